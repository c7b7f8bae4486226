import { invalid } from '../parse.ts'

/** Entries of one page by default, and at most. */
const PAGE = 20
const MAX_PAGE = 100

export interface Paging {
  /** The id of the entry before the page. */
  readonly after: string | null
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

/** `after`, `limit` and `order` of a list. */
export function pagingIn(query: URLSearchParams, usual: Paging['order']): Paging {
  const limit = wholeNumber(query, 'limit', { usual: PAGE, min: 1, max: MAX_PAGE })
  const order = query.get('order') ?? usual
  if (order !== 'asc' && order !== 'desc') throw invalid('"order" must be "asc" or "desc"', 'order', 'invalid_value')
  return { after: query.get('after'), limit, order }
}

/** One page of a list, as OpenAI shows it. */
export function listBody(data: readonly { readonly id: string }[], has_more: boolean): object {
  return { object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more }
}

export function notInList(after: string): Error {
  return invalid(`There is no item "${after}" in this list`, 'after', 'invalid_value')
}

export function wholeNumber(
  query: URLSearchParams,
  name: string,
  { usual, min, max }: { usual: number; min: number; max: number },
): number {
  const given = query.get(name)
  if (given === null) return usual
  const number = Number(given)
  if (given === '' || !Number.isInteger(number) || number < min || number > max) {
    throw invalid(`"${name}" must be a whole number from ${min} to ${max}`, name, 'invalid_value')
  }
  return number
}
