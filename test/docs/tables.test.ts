import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CORE_LIMITS } from '../../src/core/basics/limits.ts'
import { UampError, type ErrorCode } from '../../src/protocol/errors.ts'
import { ServerEvent } from '../../src/protocol/events.ts'
import { limits } from '../../src/protocol/limits.ts'
import { errorResponse } from '../../src/server/routes.ts'
import { DEFAULT_LIMITS } from '../../src/server/limits.ts'
import { ROOT } from './child.ts'

const CODES: Record<ErrorCode, true> = {
  invalid_request: true,
  unauthorized: true,
  forbidden: true,
  payment_required: true,
  not_found: true,
  agent_offline: true,
  conflict: true,
  response_in_progress: true,
  version_mismatch: true,
  too_large: true,
  rate_limited: true,
  timeout: true,
  cancelled: true,
  interrupted: true,
  approval_unavailable: true,
  tool_budget_exceeded: true,
  not_supported: true,
  provider_error: true,
  overloaded: true,
  internal: true,
}

/** The rows that a document should have and has not. */
const missing = (name: string, rows: readonly string[]): string[] => {
  const text = readFileSync(join(ROOT, 'docs', name), 'utf8')
  return rows.filter((row) => !text.includes(row))
}

test('every error code has a row with its status', () => {
  const rows = (Object.keys(CODES) as ErrorCode[]).map((code) => `| \`${code}\` | ${errorResponse(new UampError(code, '')).status} | `)
  expect(missing('events.md', rows)).toEqual([])
})

test('every limit has a row with its number', () => {
  const ofServer = Object.entries({ ...DEFAULT_LIMITS, ...CORE_LIMITS }).map(([name, value]) => `| \`${name}\` | ${shown(name, value)} | `)
  const ofEvents = Object.entries(limits).flatMap(([name, value]) =>
    typeof value === 'number' ? [`| \`${name}\` | ${shown(name, value)} | `] : [],
  )
  expect(missing('events.md', [...ofServer, ...ofEvents])).toEqual([])
})

function shown(name: string, value: number): string {
  if (/Bytes(PerPrincipal)?$/.test(name) && value >= 1024 ** 3) return `${value / 1024 ** 3} GiB`
  if (/Bytes(PerPrincipal)?$/.test(name)) return value >= 1024 * 1024 ? `${value / 1024 / 1024} MiB` : `${value / 1024} KiB`
  if (!name.endsWith('Ms')) return value.toLocaleString('en-US')
  if (value >= 24 * 3_600_000) return `${value / 24 / 3_600_000} days`
  return value > 300_000 ? `${value / 60_000} min` : `${value / 1000} s`
}

test('every extension event is in the mapping', () => {
  const types = ServerEvent.def.options.map((option) => option.shape.type.def.values[0] as string)
  const extensions = types.filter((type) => type.startsWith('x.')).map((type) => `\`${type}\``)
  expect(missing('mapping.md', extensions)).toEqual([])
})

test('every metric is in the guide', () => {
  const source = readFileSync(join(ROOT, 'src/server/node/prometheus.ts'), 'utf8')
  const names = [...source.matchAll(/'(uamp_\w+)'/g)].map(([, name]) => `\`${name}\``)
  expect(names.length).toBeGreaterThan(5)
  expect(missing('server.md', names)).toEqual([])
  const work = readFileSync(join(ROOT, 'src/server/node/work-metrics.ts'), 'utf8')
  const others = [...work.matchAll(/'((?:uamp|gen_ai)_\w+)'/g)].map(([, name]) => `\`${name}\``)
  expect(others.length).toBeGreaterThan(4)
  expect(missing('operations.md', others)).toEqual([])
})
