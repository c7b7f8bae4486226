import type { GuardedHttp } from '../../../core/ports/http.ts'
import { a2aError } from '../errors.ts'
import type { PushConfig } from '../model.ts'
import type { PushLimits } from './limits.ts'

export type NewConfig = Omit<PushConfig, 'id'> & { readonly id?: string }

type Checked = Omit<NewConfig, 'taskId'>

/** What may stand in a header. A line break would begin another one. */
const HEADER_TEXT = /^[\x20-\x7e]*$/
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const ID_LENGTH = 256

/** Throws `INVALID_PARAMS` for a config that could never be used, or not safely. What it throws names no secret. */
export function configChecker(outbound: GuardedHttp, { textLength }: PushLimits): (config: Checked) => Checked {
  const short = (value: string, field: string, max = textLength): void => {
    if (value.length > max) throw invalid(`"${field}" may have ${max} characters`, field)
  }
  const forHeader = (value: string, field: string): void => {
    short(value, field)
    if (!HEADER_TEXT.test(value)) throw invalid(`"${field}" may have only visible ASCII characters: it is sent in a header`, field)
  }

  return (config) => {
    const { id, url, token, authentication } = config
    short(url, 'url')
    const reason = outbound.refuses(url)
    if (reason !== undefined) throw invalid(`The webhook cannot be called: ${reason}`, 'url')
    if (id !== undefined) {
      short(id, 'id', ID_LENGTH)
      if (!HEADER_TEXT.test(id)) throw invalid('"id" may have only visible ASCII characters', 'id')
    }
    if (token !== undefined) forHeader(token, 'token')
    if (authentication) {
      const { scheme, credentials } = authentication
      short(scheme, 'authentication.scheme')
      if (!SCHEME.test(scheme))
        throw invalid('"authentication.scheme" must be the name of an HTTP authentication scheme', 'authentication.scheme')
      if (credentials !== undefined) forHeader(credentials, 'authentication.credentials')
    }
    return {
      url,
      ...(id !== undefined && id !== '' && { id }),
      ...(token !== undefined && token !== '' && { token }),
      ...(authentication && { authentication }),
    }
  }
}

function invalid(message: string, field: string): Error {
  return a2aError('INVALID_PARAMS', message, { field })
}
