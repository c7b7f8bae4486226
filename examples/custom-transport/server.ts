import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'
import { plain } from './plain.ts'

await serve(demo(), { port: Number(process.env['PORT'] ?? 8787), transports: [plain] })
