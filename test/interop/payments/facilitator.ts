/** A facilitator of x402 on this machine: the official one, with a chain that is a map in memory. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { x402Facilitator } from '@x402/core/facilitator'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { encodeAbiParameters, keccak256, pad, toHex, verifyTypedData, type Hex } from 'viem'
import { onTestFinished } from 'vitest'
import { ASSET, NETWORK } from './chain.ts'

const OWN = '0x2222222222222222222222222222222222222222'
const TRANSFER = keccak256(toHex('Transfer(address,address,uint256)'))

/** One transfer of the asset, by its nonce. */
interface Moved {
  readonly hash: Hex
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
}

/** What the facilitator does instead of the honest thing. It gets the honest answer, made when it is asked for. */
type Act = (path: string, honest: () => Promise<object>, response: ServerResponse) => Promise<object | undefined>

export interface LocalFacilitator {
  readonly url: string
  /** Every transfer that the chain has seen. */
  readonly moved: readonly Moved[]
  /** The paths that were asked for, in order. */
  readonly asked: readonly string[]
  /** Undefined: it is honest. */
  act: Act | undefined
  /** False: a nonce that was used is an error, as on most chains. Default: it answers with the transaction that used it. */
  remembers: boolean
}

export async function startFacilitator(): Promise<LocalFacilitator> {
  const moved = new Map<string, Moved>()
  const asked: string[] = []
  const state = { act: undefined as Act | undefined, remembers: true }
  const facilitator = registerExactEvmScheme(new x402Facilitator(), { networks: NETWORK, signer: signer(moved, state) as never })
  const server = createServer((request, response) => {
    void (async () => {
      const path = request.url ?? ''
      asked.push(path)
      const { paymentPayload, paymentRequirements } = JSON.parse(await text(request)) as {
        paymentPayload: never
        paymentRequirements: never
      }
      const honest = (): Promise<object> =>
        path === '/verify'
          ? facilitator.verify(paymentPayload, paymentRequirements)
          : facilitator.settle(paymentPayload, paymentRequirements)
      const answer = await (state.act ? state.act(path, honest, response) : honest())
      if (!answer) return
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
    })().catch((error: unknown) => {
      response.statusCode = 500
      response.end(JSON.stringify({ error: String(error) }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.defineProperty(Object.assign(state, { url, asked }), 'moved', {
    get: () => [...moved.values()],
  }) as unknown as LocalFacilitator
}

interface Call {
  readonly functionName: string
  readonly args: readonly unknown[]
}

/** What the official facilitator needs of a chain. */
function signer(moved: Map<string, Moved>, state: { readonly remembers: boolean }) {
  const used = (nonce: unknown): Moved | undefined => moved.get(String(nonce).toLowerCase())
  return {
    getAddresses: () => [OWN],
    verifyTypedData: (args: Parameters<typeof verifyTypedData>[0]) => verifyTypedData(args),
    readContract: ({ functionName, args }: Call) =>
      functionName === 'transferWithAuthorization' && used(args[5]) ? Promise.reject(new Error('nonce used')) : Promise.resolve([]),
    writeContract: ({ args }: Call) => {
      const [from, to, value, , , nonce] = args as [Hex, Hex, bigint, bigint, bigint, Hex]
      const before = used(nonce)
      if (before) return state.remembers ? Promise.resolve(before.hash) : Promise.reject(new Error('nonce used'))
      const hash = keccak256(encodeAbiParameters([{ type: 'bytes32' }], [nonce]))
      moved.set(nonce.toLowerCase(), { hash, from, to, value })
      return Promise.resolve(hash)
    },
    waitForTransactionReceipt: ({ hash }: { hash: Hex }) => {
      const found = [...moved.values()].find((each) => each.hash === hash)
      const topics = found && [TRANSFER, pad(found.from), pad(found.to)]
      const log = found && { address: ASSET, topics, data: pad(toHex(found.value)) }
      return Promise.resolve({ status: 'success', logs: log ? [log] : [] })
    },
    getCode: ({ address }: { address: string }) => Promise.resolve(address.toLowerCase() === ASSET.toLowerCase() ? '0x6080' : undefined),
  }
}
