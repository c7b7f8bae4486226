// @ts-check
/** Faults on purpose, to see that the fuzzer finds them. Each is what one rule is about. */

/** @typedef {import('../../../dist/index.js').Transport} Transport */

/** What was kept for ever. @type {unknown[]} */
const leaked = []

/** By name: what `GET /planted` does. @type {Readonly<Record<string, () => Promise<Response>>>} */
const FAULTS = {
  throw: async () => {
    throw new TypeError('planted')
  },
  crash: async () => {
    setImmediate(() => {
      throw new Error('planted')
    })
    return Response.json({})
  },
  reject: async () => {
    void Promise.reject(new Error('planted'))
    return Response.json({})
  },
  stall: async () => {
    const end = performance.now() + 400
    while (performance.now() < end);
    return Response.json({})
  },
  leak: async () => {
    leaked.push(Array.from({ length: 5_000 }, () => ({})))
    return Response.json({})
  },
  hang: () => new Promise(() => undefined),
  status: async () => Response.json({ error: { code: 'internal', message: 'x' } }, { status: 500 }),
  form: async () => new Response('no', { status: 400 }),
  trace: async () => Response.json({ error: { code: 'x', message: String(new Error('planted').stack) } }, { status: 400 }),
}

export const NAMES = Object.keys(FAULTS)

/** @param {string} name @returns {Transport} */
export function planted(name) {
  const fault = FAULTS[name]
  if (!fault) throw new Error(`There is no fault "${name}": ${NAMES.join(', ')}`)
  return { name: 'planted', routes: () => [{ method: 'GET', path: '/planted', access: 'public', handle: fault }] }
}
