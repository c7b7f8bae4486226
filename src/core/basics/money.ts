export { formatAmount, isCurrency, parseAmount } from '../../protocol/money.ts'
