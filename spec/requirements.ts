import { hostedAgents } from './connect/connect.ts'
import type { Requirement } from './requirement.ts'
import { capabilities, session, version } from './uamp-events/session.ts'
import { a2aCard, a2aPush } from './a2a/card-push.ts'
import { a2aEngine } from './a2a/engine.ts'
import { a2aLegacy } from './a2a/legacy.ts'
import { a2aRemote } from './a2a/remote.ts'
import { a2aV1 } from './a2a/v1.ts'
import { acpAgent, acpRemote, acpUamp } from './acp/acp.ts'
import { agUiRemote, agUiTransport } from './ag-ui/ag-ui.ts'
import { ap2, x402 } from './payments/x402.ts'
import { envelopes, openEnvelopes, servedEnvelopes } from './envelope/envelope.ts'
import { oauthIssuer, revocation } from './identity/issuer.ts'
import { accessTokens, agentTrust, issuerKeys, proofOfPossession } from './identity/verify.ts'
import { identityMatrix, identityTime } from './identity/time.ts'
import { discovery, hops, outbound } from './identity/outbound.ts'
import { omnia } from './omnia/omnia.ts'
import { completions } from './openai/completions.ts'
import { realtime } from './openai/realtime.ts'
import { responses } from './openai/responses.ts'
import { outsideLedger, prices } from './payments/prices.ts'
import { anthropic } from './providers/anthropic.ts'
import { gateway, mcpClient, modelAgent } from './providers/gateway.ts'
import { google } from './providers/google.ts'
import { openaiCompatible, openaiProvider } from './providers/openai.ts'
import { remoteCompletions, remoteEvents } from './providers/remotes.ts'
import { content } from './uamp-events/content.ts'
import { delegation, payment, presence, voice } from './uamp-events/gaps.ts'
import { paymentsRest } from './payments/rest.ts'
import { signing, signingTransports } from './identity/signing.ts'
import { response, tools } from './uamp-events/response.ts'
import { routing, transport } from './uamp-events/transport.ts'
import { tlsListener } from './tls.ts'
import { walletRequirements } from './payments/wallet.ts'
import { laterTransports, paidTransports, transportPayments, transportsApi } from './uamp-transports/uamp-transports.ts'
import { clientShapes, eventSets, serverShapes, typeShapes } from './uamp-events/shapes.ts'

/**
 * Everything UAMP events demands that can be tested here. What it says of other protocols and of providers (§8.3 and §8.7
 * provider tables, §9.2, §13.3) belongs to the lists of those protocols and providers.
 */
const byId = {
  ...eventSets,
  ...clientShapes,
  ...serverShapes,
  ...typeShapes,
  ...session,
  ...capabilities,
  ...version,
  ...response,
  ...tools,
  ...content,
  ...transport,
  ...routing,
  ...payment,
  ...voice,
  ...presence,
  ...delegation,
  ...signing,
  ...signingTransports,
  ...completions,
  ...responses,
  ...anthropic,
  ...google,
  ...openaiProvider,
  ...openaiCompatible,
  ...remoteEvents,
  ...remoteCompletions,
  ...gateway,
  ...modelAgent,
  ...mcpClient,
  ...realtime,
  ...a2aEngine,
  ...a2aV1,
  ...acpAgent,
  ...acpUamp,
  ...acpRemote,
  ...a2aRemote,
  ...a2aLegacy,
  ...a2aCard,
  ...a2aPush,
  ...omnia,
  ...agUiTransport,
  ...agUiRemote,
  ...transportsApi,
  ...laterTransports,
  ...transportPayments,
  ...paidTransports,
  ...paymentsRest,
  ...prices,
  ...outsideLedger,
  ...envelopes,
  ...servedEnvelopes,
  ...openEnvelopes,
  ...oauthIssuer,
  ...revocation,
  ...accessTokens,
  ...issuerKeys,
  ...agentTrust,
  ...proofOfPossession,
  ...identityTime,
  ...identityMatrix,
  ...hops,
  ...outbound,
  ...discovery,
  ...hostedAgents,
  ...walletRequirements,
  ...x402,
  ...ap2,
  ...tlsListener,
}

export type RequirementId = keyof typeof byId

export const requirements: ReadonlyMap<string, Requirement> = new Map(Object.entries(byId))
