// @ts-check
import { entry, get, post } from './entry.js'

const COMMON = /** @type {const} */ ({ form: 'uamp' })
const PUBLIC = { ...COMMON, isPublic: true }

/** What is the server's own, and what is nobody's. @type {readonly import('./entry.js').Entry[]} */
export const server = [
  entry('GET /', get('/'), { ...PUBLIC, covers: [] }),
  entry('GET /agents', get('/agents'), PUBLIC),
  entry('GET /health', get('/health'), PUBLIC),
  entry('GET /ready', get('/ready'), PUBLIC),
  entry('GET /metrics', get('/metrics'), COMMON),
  entry('GET /nothing', get('/nothing/here'), { ...PUBLIC, covers: [] }),
  entry('POST /nothing', post('/nothing', { a: [1, { b: 'c' }] }), { ...PUBLIC, covers: [] }),
  entry('GET /agents/nobody', get('/agents/nobody/v1/models'), { form: 'openai', isPublic: true, covers: [] }),
]
