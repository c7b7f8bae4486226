import { UampError } from '../protocol/errors.ts'
import type { OpenGateway, OpenGatewayOptions } from '../serve/gateway.ts'
import { WINDOWS, windowsOf } from '../serve/windows.ts'

interface OwnOptions extends OpenGatewayOptions {
  /** Told what the user should know about the place of the sessions. */
  readonly tell: (text: string) => void
}

interface Own {
  readonly gateway: OpenGateway
  /** The folder that keeps the sessions, if any does. */
  readonly folder: string | undefined
}

/**
 * One process owns a data folder. Two windows are two processes: the second one uses a folder of its own in it, so that
 * neither needs the other. Where no folder can be used, sessions are not kept.
 */
export async function openOwn({ data, tell, ...options }: OwnOptions): Promise<Own> {
  const { openGateway } = await import('../serve/gateway.ts')
  try {
    if (data !== 'memory') return await openWindow(data, { tell, ...options })
  } catch (thrown) {
    tell(`Sessions are not kept: ${textOf(thrown)}`)
  }
  return { gateway: openGateway({ ...options, data: 'memory' }), folder: undefined }
}

/** Opens the first folder that no other process uses. A damaged folder of another window is no reason to keep nothing in this one. */
async function openWindow(data: string, { tell, ...options }: Omit<OwnOptions, 'data'>): Promise<Own> {
  const { isInUse } = await import('../stores/sqlite-schema.ts')
  for (const own of windowsOf(data)) {
    try {
      const gateway = await openIn(own, options)
      if (own !== data) tell(`Another process uses ${data}: the sessions of this window are kept in ${own}`)
      return { gateway, folder: own }
    } catch (thrown) {
      if (isInUse(thrown)) continue
      if (own === data) throw thrown
      tell(`${own} is skipped: ${textOf(thrown)}`)
    }
  }
  const all = `${data} has room for ${WINDOWS} windows at a time, and none of its folders is free`
  throw new UampError('overloaded', `${all}: close a window, or choose another folder with --data`)
}

async function openIn(data: string, options: Omit<OpenGatewayOptions, 'data'>): Promise<OpenGateway> {
  const [{ checkData }, { openGateway }] = await Promise.all([import('../serve/data.ts'), import('../serve/gateway.ts')])
  await checkData(data)
  const open = openGateway({ ...options, data })
  try {
    await open.started
    return open
  } catch (thrown) {
    await open.close(0)
    throw thrown
  }
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
