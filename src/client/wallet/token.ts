import { fieldsOf } from '../../protocol/records.ts'
import type { Declined, Invoice, Wallet } from '../../protocol/wallet.ts'

/** A token, or a function that gets one. */
export type PayTokenSource = string | (() => string | Promise<string>)

/** Pays with a token. One that was refused is not tried again, unless the function gives another. */
export function tokenWallet(source: PayTokenSource): Wallet {
  if (typeof source !== 'string' && typeof source !== 'function')
    throw new TypeError('A payment token is a text, or a function that gets one')
  let last: string | undefined
  return {
    async pay(invoice) {
      const refusal = otherThanToken(invoice)
      if (refusal) return refusal
      const token = typeof source === 'function' ? await source() : source
      const error = invoice.extra?.['error']
      if (error !== undefined && token === last) return { declined: `The token was refused: ${wordsOf(error)}` }
      last = token
      return { scheme: 'token', token, amount: invoice.requirements.amount }
    },
  }
}

/** The refusal of a demand that no token can pay. */
export function otherThanToken({ requirements: { schemes } }: Invoice): Declined | undefined {
  if (!schemes || schemes.length === 0 || schemes.some(({ scheme }) => scheme === 'token')) return undefined
  return { declined: `It takes ${[...new Set(schemes.map(({ scheme }) => scheme))].join(' or ')}, and the wallet has a token` }
}

function wordsOf(error: unknown): string {
  const { message, code } = fieldsOf(error)
  return typeof message === 'string' ? message : typeof code === 'string' ? code : 'it gave no reason'
}
