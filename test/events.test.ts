import { contentContract } from './contract/events/content.ts'
import { ratesContract } from './contract/events/rates.ts'
import { responsesContract } from './contract/events/responses.ts'
import { sessionsContract } from './contract/events/sessions.ts'
import { soundContract } from './contract/events/sound.ts'
import { toolsContract } from './contract/events/tools.ts'
import { viewsContract } from './contract/events/views.ts'
import { overSse, overWebSocket } from './support/wire.ts'

for (const [binding, connect] of [
  ['WebSocket', overWebSocket],
  ['HTTP + SSE', overSse],
] as const) {
  sessionsContract(binding, connect)
  responsesContract(binding, connect)
  toolsContract(binding, connect)
  contentContract(binding, connect)
  ratesContract(binding, connect)
  viewsContract(binding, connect)
  soundContract(binding, connect)
}
