import { contract } from './contract.ts'
import { acpHttp, acpWebSocket } from './transports/acp.ts'
import { eventsSse, eventsWebSocket } from './transports/events.ts'
import { omnia } from './transports/omnia.ts'

contract([eventsWebSocket, eventsSse, acpWebSocket, acpHttp, omnia])
