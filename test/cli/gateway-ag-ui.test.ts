import { expect } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { run } from '../ag-ui/wire.ts'
import { startServer } from '../support/server.ts'
import { verifies } from '../support/verifies.ts'
import { project, serving } from './run.ts'

verifies(['gateway.remotes', 'ag-ui-remote.tools'], 'a config gives an AG-UI agent, which a page calls through it', async () => {
  const there = await startServer(demo(), { tokens: { us: 'secret-0123456789abcdef' } })
  const agents = [
    { name: 'short', remote: { url: `ag-ui+${there.url}/ag-ui`, tokenEnv: 'THEIR_TOKEN' } },
    { name: 'long', remote: { url: `${there.url}/ag-ui`, protocol: 'ag-ui', token: '${THEIR_TOKEN}' } },
  ]
  const cwd = await project({ 'uamp.config.json': JSON.stringify({ agents }) })
  const { url } = await serving(['--port', '0'], { cwd, env: { THEIR_TOKEN: 'secret-0123456789abcdef', UAMP_DATA: 'memory' } })
  for (const name of ['short', 'long']) {
    const at = `${url}/agents/${name}`
    expect((await run(at, 'Hello')).said).toBe('You said: Hello')
    const tools = [{ name: 'pick', description: '' }]
    expect((await run(at, '/tool pick', { input: { tools } })).end['outcome'].pendingToolCallIds).toHaveLength(1)
  }
})
