import { contract } from './contract.ts'
import { eventsSse, eventsWebSocket } from './drivers/events.ts'
import { realtime } from './drivers/realtime.ts'

contract([eventsWebSocket, eventsSse, realtime])
