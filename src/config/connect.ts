import { dirname, resolve } from 'node:path'
import { UampError } from '../protocol/errors.ts'
import { addressOf } from '../serve/connect/address.ts'
import { present } from '../wire/fields.ts'
import type { Variables } from './environment.ts'
import type { Problems } from './problems.ts'
import type { ConnectEntry } from './schema.ts'
import type { Path } from './source.ts'

interface Filling {
  readonly variables: Variables
  readonly problems: Problems
  /** The config, which paths in it are relative to. */
  readonly file: string
}

/** The hosts with the variables of the environment in them. Adds what is wrong with them to the problems. */
export function connectWith(entries: readonly ConnectEntry[], { variables, problems, file }: Filling): readonly ConnectEntry[] {
  const filled = entries.map(({ url, agents, token, tokenEnv, tokenFile }, at): ConnectEntry => {
    const path = ['connect', at]
    const given = Object.entries({ token, tokenEnv, tokenFile }).flatMap(([name, value]) => (value === undefined ? [] : [name]))
    if (given.length > 1) problems.add([...path, given[1] ?? ''], `contradicts "${given[0]}": keep one of them`)
    const secret = variables.secret({ text: token, env: tokenEnv }, { path, field: 'token' })
    const secretFile = tokenFile === undefined ? undefined : resolve(dirname(file), tokenFile)
    return {
      url: address(variables.in(url, [...path, 'url']), path, problems),
      ...present({ agents, token: secret, tokenFile: secretFile }),
    }
  })
  checkOnce(filled, problems)
  return filled
}

function address(url: string, path: Path, problems: Problems): string {
  if (problems.has([...path, 'url'])) return url
  try {
    return addressOf(url)
  } catch (thrown) {
    problems.add([...path, 'url'], `cannot be used: ${UampError.from(thrown).message}`)
    return url
  }
}

/** A host gets each agent once. */
function checkOnce(entries: readonly ConnectEntry[], problems: Problems): void {
  for (const [at, { url, agents }] of entries.entries()) {
    const before = entries.slice(0, at).filter((other) => other.url === url)
    if (before.length === 0) continue
    if (!agents || before.some((other) => !other.agents)) {
      problems.add(['connect', at], 'names the same host as an entry before it: say with "agents" in each which agents it is for')
      continue
    }
    for (const [index, name] of agents.entries()) {
      if (before.some((other) => other.agents?.includes(name)))
        problems.add(['connect', at, 'agents', index], `is "${name}", which an entry before it offers to the same host`)
    }
  }
}
