import { contract } from './contract.ts'
import { completions } from './transports/completions.ts'
import { realtime } from './transports/realtime.ts'
import { responses, responsesSocket } from './transports/responses.ts'

contract([completions, responses, responsesSocket, realtime])
