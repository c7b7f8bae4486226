// What is killed: a server with the demo, on the folder and the port that it is given, for the senders whose keys are in the environment.
import { demo } from 'uamp/agents/demo'
import { serve } from 'uamp/server/node'

const [, , data, port] = process.argv
await serve(demo(), { data, port: Number(port), insecureDev: true, envelope: { keys: JSON.parse(process.env['KEYS'] ?? '{}') } })
