// @ts-check
/** What valid requests refer to: sessions, responses, tasks and the like, made as any client would. */

/** @typedef {import('./ids.js').Ids} Ids */
/** @typedef {{ url: string, token: string | undefined, ids: Ids }} Owner */

const V1 = { 'a2a-version': '1.0' }

/** Makes one of each. @param {Owner} owner @param {string} round */
export async function prepare(owner, round) {
  const { url, token, ids } = owner
  /** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] */
  const post = async (path, body, headers = {}) => {
    const authorization = token === undefined ? undefined : { authorization: `Bearer ${token}` }
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...authorization, ...headers },
    })
    return { headers: response.headers, body: /** @type {any} */ (await response.json().catch(() => ({}))) }
  }
  /** @param {string} name @param {unknown} id */
  const keep = (name, id) => {
    if (typeof id === 'string') ids.set(name, id)
  }
  /** @param {string} text */
  const message = (text) => ({ message: { messageId: `p${round}-${text}`, role: 'ROLE_USER', parts: [{ text }] } })

  const session = await post('/events', [{ type: 'session.create' }, { type: 'input.text', text: 'hello' }, { type: 'response.create' }])
  keep('session', session.body.session_id)
  keep('omnia', session.body.session_id)
  keep('response', (await post('/v1/responses', { model: 'demo', input: 'hello' })).body.id)
  keep(
    'completion',
    (await post('/v1/chat/completions', { model: 'demo', messages: [{ role: 'user', content: 'hello' }], store: true })).body.id,
  )
  const { task } = (await post('/a2a/rest/message:send', message('hello'), V1)).body
  keep('task', task?.id)
  keep('context', task?.contextId)
  keep('waiting', (await post('/a2a/rest/message:send', message('/approve x'), V1)).body.task?.id)
  keep(
    'upload',
    (await post('/media/request-upload', { session_id: ids.get('session'), filename: 'a.txt', mime_type: 'text/plain', size_bytes: 5 }))
      .body.upload_id,
  )
  const opened = await post('/acp', { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } })
  const connection = opened.headers.get('acp-connection-id')
  keep('connection', connection)
  if (ids.get('mcp') === undefined) {
    // The server loads what it needs for MCP servers with the first one: that is no leak.
    const mcpServers = [{ type: 'http', name: 'm', url: ids.get('webhook') ?? url, headers: [] }]
    const acp = { 'acp-connection-id': connection ?? '' }
    await post('/acp', { jsonrpc: '2.0', id: 2, method: 'session/new', params: { cwd: '/project', mcpServers } }, acp)
    ids.set('mcp', 'm')
  }
  keep('acpSession', session.body.session_id)
  keep('thread', `thread-${round}`)
  keep('run', `run-${round}`)
  const run = {
    threadId: `thread-${round}`,
    runId: `run-${round}`,
    messages: [{ id: 'u', role: 'user', content: 'hello' }],
    tools: [],
    context: [],
    state: {},
  }
  await post('/ag-ui', run, { accept: 'text/event-stream' })
}
