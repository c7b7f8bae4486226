import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose'

export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
export const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

export const basic = (name: string, secret: string) => `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`

/** Posts a form, as any client of OAuth does. */
export async function postForm(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : (JSON.parse(text) as Answer['body']) }
}

/** A token that a client gets at a server, by its secret. */
export async function tokenFrom(
  url: string,
  [name, secret]: readonly [string, string],
  fields: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { body } = await postForm(
    `${url}/auth/token`,
    { grant_type: 'client_credentials', ...fields },
    { authorization: basic(name, secret) },
  )
  if (typeof body['access_token'] !== 'string') throw new Error(JSON.stringify(body))
  return body['access_token']
}

/** What a token says, as anybody finds out with the published keys. Throws if it is not signed with one of them. */
export async function claimsOf(base: string, token: unknown): Promise<JWTPayload & { readonly header: Readonly<Record<string, unknown>> }> {
  const jwks = (await (await fetch(`${base}/.well-known/jwks.json`)).json()) as JSONWebKeySet
  const { payload } = await jwtVerify(token as string, createLocalJWKSet(jwks))
  return { ...payload, header: decodeProtectedHeader(token as string) }
}
