import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'
import { plain } from './plain.ts'

const { url } = await serve(demo(), { port: Number(process.env['PORT'] ?? 8787), transports: [plain] })
console.log(`Listening at ${url}`)
