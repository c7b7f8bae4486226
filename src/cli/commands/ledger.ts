import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Accounts } from '../../payments/accounts.ts'
import { checkLedger as checkStore, type LedgerReport } from '../../payments/check.ts'
import { UampError } from '../../protocol/errors.ts'
import { checkData, openData } from '../../serve/data.ts'
import { remoteLedger } from '../../serve/storage/control.ts'
import { isInUse } from '../../stores/sqlite-schema.ts'
import { harmless, report } from '../print.ts'

export interface LedgerFlags {
  readonly data?: string
  readonly json?: true
}

/** Adds up the money in a data folder, or asks the server that uses it to. */
export async function checkLedger({ data: given, json }: LedgerFlags): Promise<number> {
  const data = given || process.env['UAMP_DATA'] || '.uamp'
  if (data === 'memory') throw new UampError('invalid_request', 'Money in memory ends with its server: name its data folder with --data')
  await checkData(data)
  if (!existsSync(join(data, 'uamp.db'))) {
    throw new UampError('not_found', `There is no data in ${data}: name the folder of the server with --data`)
  }
  const found = await checked(data)
  process.stdout.write(json ? `${JSON.stringify(found)}\n` : page(found))
  return found.problems.length > 0 ? 1 : 0
}

async function checked(data: string): Promise<LedgerReport> {
  const store = open(data)
  if (!store) return asked(data)
  try {
    return await checkStore(store, new Accounts(store))
  } finally {
    await store.close()
  }
}

function open(data: string) {
  try {
    return openData(data, { log: (_, message) => report(message), mostBytes: Infinity }).store
  } catch (thrown) {
    if (isInUse(thrown)) return undefined
    throw thrown
  }
}

async function asked(data: string): Promise<LedgerReport> {
  try {
    return await remoteLedger(data)
  } catch (thrown) {
    if (thrown instanceof UampError) throw thrown
    throw new UampError('conflict', `${data} is in use by a server that does not answer: stop it first`, { cause: thrown })
  }
}

function page({ accounts, movements, inside, openLocks, problems }: LedgerReport): string {
  const sums = Object.entries(inside).map(([currency, amount]) => `${amount} ${currency}`)
  const money = sums.length === 0 ? 'no money' : sums.join(', ')
  const what = `${movements} movements of ${accounts} accounts, ${money} inside, ${openLocks} open locks.\n`
  if (problems.length === 0) return `The ledger adds up: ${what}`
  return `The ledger does not add up: ${what}${problems.map((problem) => `- ${harmless(problem)}\n`).join('')}`
}
