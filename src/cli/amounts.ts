import { InvalidArgumentError } from 'commander'
import { parseAmount } from '../protocol/money.ts'

const TIMES: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 24 * 3_600_000 }
const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

/** Milliseconds of `30d`, `12h`, `90m` or `10s`. */
export function duration(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text) ?? []
  const ms = Number(number) * (TIMES[unit] ?? NaN)
  if (ms > 0) return ms
  throw new InvalidArgumentError('Write a time as 30d, 12h, 90m or 10s.')
}

/** Bytes of `500MB`, `10GB` or a plain number. A KB always has 1,024 bytes. */
export function byteCount(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text) ?? []
  const bytes = number === '' ? NaN : Number(number) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' ')
  if (bytes >= 0) return Math.floor(bytes)
  throw new InvalidArgumentError('Write a size as 500MB, 10GB or a number of bytes.')
}

/** An amount of money: `0.10`. */
export function amount(text: string): string {
  if (parseAmount(text) !== undefined) return text
  throw new InvalidArgumentError('Write an amount as 0.10 or 5.')
}

export function sizeText(bytes: number): string {
  const step = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1)
  const number = bytes / 1024 ** step
  return `${number < 10 && step > 0 ? number.toFixed(1) : Math.round(number)} ${UNITS[step]}`
}
