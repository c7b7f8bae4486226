// @ts-check

/** How a protocol says no. @typedef {'uamp' | 'openai' | 'rpc' | 'status' | 'status03' | 'tasks' | 'omnia' | 'oauth'} Form */

/**
 * A valid request. `$name` in it stands for an id: see ids.js.
 *
 * @typedef {object} Request
 * @property {string} method
 * @property {string} target
 * @property {Readonly<Record<string, string>>} headers
 * @property {unknown} body JSON, or bytes, or undefined
 */

/**
 * Something valid that clients do: one request, several in a row, or a conversation on a WebSocket.
 *
 * @typedef {object} Entry
 * @property {string} name
 * @property {readonly string[]} covers the routes, as the server lists them at `/`
 * @property {Form} form
 * @property {boolean} isPublic needs no token
 * @property {readonly Request[]} steps each may use what the ones before were told
 * @property {{ target: string, headers: Readonly<Record<string, string>>, frames: readonly unknown[], takesToken: boolean } | undefined} socket
 */

/** @typedef {{ form: Form, isPublic?: boolean, covers?: readonly string[] }} Common */

/** @param {string} target @param {Readonly<Record<string, string>>} [headers] @returns {Request} */
export const get = (target, headers = {}) => ({ method: 'GET', target, headers, body: undefined })

/** @param {string} target @param {unknown} [body] @param {Readonly<Record<string, string>>} [headers] @returns {Request} */
export const post = (target, body, headers = {}) => ({ method: 'POST', target, headers, body })

/** @param {string} method @param {string} target @param {Partial<Request>} [more] @returns {Request} */
export const request = (method, target, more = {}) => ({ method, target, headers: {}, body: undefined, ...more })

/** A request, or several in a row. @param {string} route @param {Request | readonly Request[]} steps @param {Common} common @returns {Entry} */
export function entry(route, steps, { form, isPublic = false, covers = [route] }) {
  const list = Array.isArray(steps) ? steps : [steps]
  return { name: route, covers, form, isPublic, steps: list, socket: undefined }
}

/** @typedef {{ headers?: Readonly<Record<string, string>>, takesToken?: boolean, form?: Form, covers?: readonly string[] }} SocketOptions */

/** A conversation on a WebSocket. @param {string} target @param {readonly unknown[]} frames @param {SocketOptions} [options] @returns {Entry} */
export function socket(target, frames, { headers = {}, takesToken = false, form = 'uamp', covers } = {}) {
  const route = `WS ${target.replace(/\?.*/, '')}`
  return { name: route, covers: covers ?? [route], form, isPublic: false, steps: [], socket: { target, headers, frames, takesToken } }
}
