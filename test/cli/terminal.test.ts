import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { demo } from '../../src/agents/demo/index.ts'
import { widthOf } from '../../src/cli/chat/render/width.ts'
import { serve } from '../../src/serve/index.ts'
import { Cli, project, serving } from './run.ts'
import { KEY, pasted, Terminal, type TerminalOptions } from './terminal.ts'

/** One for all that only talk to it. */
let url = ''
beforeAll(async () => {
  const server = await serve(demo(), { port: 0, data: 'memory', log: () => undefined })
  url = server.url
  return () => server.close({ graceMs: 0 })
})

/** A home of its own, so that no test sees what another has kept. */
async function home(files: Readonly<Record<string, string>> = {}): Promise<string> {
  return project(files)
}

async function opened(args: readonly string[] = [url], { cwd, ...options }: TerminalOptions = {}): Promise<Terminal> {
  const folder = cwd ?? (await home())
  const env = { HOME: folder, XDG_STATE_HOME: join(folder, 'state'), TMPDIR: folder, ...options.env }
  const terminal = new Terminal(['chat', ...args], { ...options, cwd: folder, env })
  await terminal.answers(/ listens\./)
  return terminal
}

const AGENT = `import { defineAgent, text } from 'uamp'
const MARKDOWN: string = '# Title\\n\\nSome **bold** words and \`code\` that are wrapped to the width.\\n\\n- one long item that goes on below\\n\\n\`\`\`ts\\nconst a = 1\\n\`\`\`\\n'
export default defineAgent('writer', async function* (turn) {
  const heard = turn.messages.at(-1)?.content ?? ''
  if (heard === 'fail') throw new Error('kaboom')
  if (heard === 'print') console.log('from the agent')
  const answer = heard === 'md' ? MARKDOWN : \`I heard \${JSON.stringify(heard)}\`
  for (const piece of answer.match(/[^]{1,5}/g) ?? []) yield text(piece)
  yield { type: 'usage.delta', delta: { input_tokens: 1234, output_tokens: 5, cost: { total_cost: 0.0021, currency: 'USD' } } }
})
`

test('a pasted file is one message', async () => {
  const terminal = await opened()
  const lines = Array.from({ length: 30 }, (_, at) => `line ${at}`).join('\n')
  terminal.write(pasted(lines))
  await terminal.prints(/line 29/)
  await terminal.says(' end', /You said: line 0\nline 1\n[^]*line 29 end\n/)
  expect(terminal.output.match(/You said/g)).toHaveLength(1)
})

test('a message has several lines by Alt-Enter, or between three quotes', async () => {
  const terminal = await opened()
  await terminal.says(`one${KEY.alt}${KEY.enter}two`, /You said: one\ntwo\n/)
  await terminal.says(`"""three${KEY.enter}four"""`, /You said: three\nfour\n/)
})

test('an agent in a file answers without a server: Markdown in colours, with its usage and cost', async () => {
  const cwd = await home({ 'agent.ts': AGENT })
  const terminal = await opened(['agent.ts', '--data', 'memory'], { cwd })
  await terminal.says('md', /1,234 in · 5 out · \$0\.0021/)
  expect(terminal.output).toContain('\nTitle\n\nSome bold words and code that are wrapped to the width.\n\n• one long item')
  expect(terminal.painted).toContain('\u001B[1mbold\u001B[22m')
  expect(terminal.painted).toContain('\u001B[35mconst\u001B[39m')
  await terminal.says('fail', /\(The agent failed: kaboom\)[^]*internal: /)
  await terminal.says('/raw', /as they come/)
  await terminal.says('md', /# Title\n\nSome \*\*bold\*\* words/)
})

test.each([{ NO_COLOR: '1' }, { TERM: 'dumb' }, { CI: 'true' }])(
  'where no colours are shown, such as by %j, Markdown stays as it came',
  async (env) => {
    const cwd = await home({ 'agent.ts': AGENT })
    const terminal = await opened(['agent.ts', '--data', 'memory'], { cwd, env })
    await terminal.says('md', /# Title\n\nSome \*\*bold\*\* words/)
    expect(terminal.painted.split('\u001B').filter((part) => /^\[[\d;]+m/.test(part))).toEqual([])
  },
)

test('on a terminal of 20 columns no line is wider, and words stay whole', async () => {
  const cwd = await home({ 'agent.ts': AGENT })
  const terminal = await opened(['agent.ts', '--data', 'memory'], { cwd, columns: 20 })
  await terminal.says('md', /1,234 in/)
  expect(terminal.output).toContain('Some bold words and\ncode that are\nwrapped to the\nwidth.\n')
  expect(terminal.output).toContain('• one long item\n  that goes on\n  below\n')
  await terminal.says('/help', /\/quit/)
  await terminal.says('a message that is longer than twenty columns', /I heard/)
  for (const row of terminal.output.split(/[\r\n]/)) expect(widthOf(row)).toBeLessThan(20)
})

const TOOL = `import { defineAgent, text, toolRunner } from 'uamp'
const remove = { name: 'remove', description: 'Removes a file', parameters: {}, needsApproval: true, run: () => 'gone' }
export default defineAgent('careful', async function* (turn) {
  const [result] = yield* toolRunner(turn, { tools: [remove] })([{ id: 'call_' + turn.id, name: 'remove', arguments: '{"path":"a.txt"}' }])
  yield text(result?.is_error ? 'Not removed' : 'Removed')
})
`

/** Waits until a question takes keys: those that come at once were meant for the message that was being typed. */
async function listening(terminal: Terminal): Promise<void> {
  do {
    terminal.clear()
    terminal.write(KEY.up)
    await terminal.prints(/❯ (?:y {2}Yes|n {2}No)/)
  } while (!terminal.output.includes('❯ y'))
  terminal.clear()
  terminal.write(KEY.down)
  await terminal.prints(/❯ n {2}No/)
}

test('approvals are chosen with arrow keys or letters', async () => {
  const terminal = await opened()
  for (const [keys, said] of [
    [`${KEY.up}${KEY.enter}`, 'Approved'],
    [KEY.enter, 'Denied'],
    ['y', 'Approved'],
    ['n', 'Denied'],
    [KEY.alt, 'Denied'],
  ] as const) {
    terminal.clear()
    terminal.write(`/approve it${KEY.enter}`)
    await terminal.prints(/it\n\s+y {2}Yes\n❯ n {2}No/)
    await listening(terminal)
    terminal.write(keys)
    await terminal.answers(new RegExp(`${said}: it`))
  }
})

test('an approval shows the call, and "always" counts for the tool, in this chat', async () => {
  const cwd = await home({ 'agent.ts': TOOL })
  const terminal = await opened(['agent.ts', '--data', 'memory'], { cwd })
  for (const [key, said] of [
    ['n', 'Not removed'],
    ['a', 'Removed'],
  ] as const) {
    terminal.clear()
    terminal.write(`do it${KEY.enter}`)
    await terminal.prints(/May "remove" run\?\n\s+remove {"path":"a\.txt"}\n[^]*a {2}Always allow remove in this chat/)
    await listening(terminal)
    terminal.write(key)
    await terminal.answers(new RegExp(`\n${said}\n`))
  }
  await terminal.says('do it again', /\nRemoved\n/)
  await terminal.says('/new', /listens/)
  terminal.clear()
  terminal.write(`do it${KEY.enter}`)
  await terminal.prints(/May "remove" run\?/)
})

test('Ctrl-C stops the answer; at an empty prompt, the second one leaves', async () => {
  const terminal = await opened()
  terminal.write(`/count 1000000 5${KEY.enter}`)
  await terminal.prints(/1 2 3/)
  terminal.write(KEY.ctrl('c'))
  await terminal.answers(/\(cancelled\)/)
  await terminal.says('hello', /You said: hello/)
  terminal.write(`half${KEY.ctrl('c')}`)
  terminal.write(KEY.ctrl('c'))
  await terminal.prints(/Ctrl-C again/)
  terminal.write(KEY.ctrl('c'))
  // In one line, whatever its length: so it can be copied.
  await terminal.prints(/To continue later: npx uamp chat http:\S+ --session sess_\S+\n/)
  expect(await terminal.exit()).toBe(0)
})

test('commands: an unknown one names the nearest, those of the agent go to it', async () => {
  const cwd = await home({ 'notes.txt': 'remember the milk\n' })
  const terminal = await opened([url], { cwd })
  await terminal.says('/hlep', /There is no \/hlep\. Did you mean \/help\?/)
  await terminal.says(
    '/help',
    /\/sessions[^]*\/resume[^]*\/model[^]*\/file[^]*\/image[^]*\/tools[^]*\/save[^]*\/usage[^]*\/raw[^]*\/quit[^]*\/think/,
  )
  await terminal.says('/think hard', /I thought about: hard/)
  await terminal.says('//help', /I echo what you say/)
  await terminal.says('/tools', /· add/)
  await terminal.says('/model', /demo {2}this agent/)
  await terminal.says('/model dmo', /Did you mean demo\?/)
  await terminal.says('/usage', /[1-9]\d* in · [1-9]\d* out/)
  await terminal.says(
    'see @notes.txt, and @nobody',
    /You said: see @notes\.txt, and @nobody\n\nnotes\.txt:\n```txt\nremember the milk\n```/,
  )
  await terminal.says('/file notes.txt', /goes with your next message/)
  await terminal.says('what is it?', /You said: what is it\?\n\nnotes\.txt:/)
  await terminal.says('/image notes.txt', /is no PNG/)
  await terminal.says('/image', /Name a file: \/image photo\.png/)
  await terminal.says('/', /\/sessions[^]*\/think/)
  await terminal.says('/file none.txt', /There is no file none\.txt/)
  await terminal.says('/save talk.md', /saved as talk\.md/)
  terminal.clear()
  terminal.write(`/save notes.txt${KEY.enter}`)
  await terminal.prints(/notes\.txt is there already\. Replace it\?\n\s+y {2}Yes\n❯ n {2}No/)
  await listening(terminal)
  terminal.write('n')
  await terminal.answers(/\(not saved\)/)
  expect(await readFile(join(cwd, 'notes.txt'), 'utf8')).toBe('remember the milk\n')
  await terminal.says('/save none/talk.md', /none\/talk\.md cannot be written: there is no folder none/)
  await terminal.says('/save ~/talk2.md', /saved as ~\/talk2\.md/)
  expect(await readdir(cwd)).toContain('talk2.md')
  expect(await readFile(join(cwd, 'talk.md'), 'utf8')).toContain('## You\n\nwhat is it?\n\n## demo\n\nYou said: what is it?')
  terminal.write(`/quit${KEY.enter}`)
  expect(await terminal.exit()).toBe(0)
})

test('/model says which model answers', async () => {
  const cwd = await home({
    'away.yaml':
      'agents: [{ name: away, model: mine/one, fallbacks: [mine/two] }]\nproviders: { mine: { baseUrl: "http://127.0.0.1:1/v1" } }\n',
  })
  const terminal = await opened(['away.yaml', '--data', 'memory'], { cwd })
  await terminal.says('/model', /mine\/one {2}the model of away that answers now; [^]*mine\/two {2}a model of away;/)
  await terminal.says('/model mine/two', /\(mine\/two answers from now on\)/)
  await terminal.says('/model', /mine\/one {2}a model of away; [^]*mine\/two {2}the model of away that answers now;/)
})

test('/sessions tells the time as clocks do where the user is', async () => {
  const chat = { at: Date.UTC(2026, 0, 31, 20, 5), target: url, session: 'sess_1', agent: 'demo', title: 'hello' }
  const cwd = await home({ 'state/uamp/chats': `${JSON.stringify(chat)}\n` })
  const terminal = await opened([url], { cwd, env: { TZ: 'Asia/Tokyo' } })
  await terminal.says('/sessions', /1 {2}2026-02-01 05:05 {2}demo {2}hello/)
})

test('an earlier chat is resumed with your own messages, in the same run or the next', async () => {
  const cwd = await home()
  const terminal = await opened([url], { cwd })
  await terminal.says('the first chat', /You said: the first chat/)
  await terminal.says('/new', /demo listens/)
  await terminal.says('the second chat', /You said: the second chat/)
  await terminal.says('/sessions', /1 {2}.*the second chat \(this one\)\n\s+2 {2}.*the first chat\n/)
  await terminal.says('/resume 2', /\n> the first chat\nYou said: the first chat\n/)
  await terminal.says('/resume sess_none', /There is no session/)
  terminal.clear()
  terminal.write(`/resume${KEY.enter}`)
  await terminal.prints(/❯ 1 {2}the second chat {2}\(\d{4}-\d\d-\d\d \d\d:\d\d, demo\)/)
  terminal.clear()
  terminal.write(KEY.ctrl('c'))
  await terminal.answers(/Go on with/)
  await terminal.says('/history', /user: the first chat\nassistant: You said: the first chat/)
  terminal.clear()
  terminal.write(`/quit${KEY.enter}`)
  const [, session = ''] = await terminal.prints(/--session\s+(\S+)\n/)
  await terminal.exit()
  const again = await opened([url, '--session', session], { cwd })
  await again.prints(/\n> the first chat\nYou said: the first chat\n[^]*\n> \/history\nuser: /)
})

test('Ctrl-C while the server is away says when the answer stops, and a second one leaves; a script leaves at once', async () => {
  const { cli: server, url: away } = await serving(['--data', 'memory'])
  const terminal = await opened([away])
  terminal.write(`/count 1000000 5${KEY.enter}`)
  const script = new Cli(['chat', away, '/count 1000000 5'])
  await Promise.all([terminal.prints(/1 2 3/), script.prints(/1 2 3/)])
  server.signal('SIGKILL')
  await Promise.all([terminal.prints(/\(the connection to http:\S+ is lost/), script.prints(/ is lost; trying again/)])
  terminal.write(KEY.ctrl('c'))
  await terminal.prints(/\(stopped as soon as the connection is back; Ctrl-C again leaves\)/)
  terminal.write(KEY.ctrl('c'))
  expect(await terminal.exit()).toBe(0)
  script.signal('SIGINT')
  expect(await script.exit()).toBe(130)
})

test('the last line is the command that goes on with the chat, unless nothing is kept', async () => {
  const cwd = await home({ 'agent.ts': AGENT })
  const terminal = await opened(['agent.ts', '--data', 'kept here'], { cwd, columns: 200 })
  await terminal.says('the first chat', /I heard/)
  terminal.write(KEY.ctrl('d'))
  const [, session = ''] = await terminal.prints(/npx uamp chat agent\.ts --data 'kept here' --session (\S+)\n/)
  await terminal.exit()
  const again = await opened(['agent.ts', '--data', 'kept here', '--session', session], { cwd })
  await again.prints(/\n> the first chat\n/)
  // The folder is in use, so that this window has another.
  const second = await opened(['agent.ts', '--data', 'kept here'], { cwd, columns: 200 })
  // Not behind the prompt: it is erased before.
  expect(second.painted.replaceAll('\u001B[31m', '')).toContain('\u001B[KAnother')
  const [, folder = ''] = /sessions of this window are kept in (\S.*)/.exec(second.output) ?? []
  await second.says('the second chat', /I heard/)
  second.write(KEY.ctrl('d'))
  await second.prints(/npx uamp chat agent\.ts --data \S.* --session/)
  expect(second.output).toContain(`--data '${folder.trim()}' --session`)
  await second.exit()
  const forgetful = await opened(['agent.ts', '--data', 'memory'], { cwd })
  await forgetful.says('hello', /I heard/)
  forgetful.write(KEY.ctrl('d'))
  await forgetful.exit()
  expect(forgetful.output).not.toContain('To continue later')
})

test('messages are remembered for the next run, in a file for the user alone; secrets are not', async () => {
  const cwd = await home()
  const secret = 'wonderland-7b1f9c04'
  const first = await opened([url], { cwd, env: { UAMP_TOKEN: secret } })
  await first.says('remember me', /You said/)
  await first.says(`my token is ${secret}`, /You said/)
  await first.says('export KEY=sk-abcdefghijklmnopqrstuvwx', /You said/)
  await first.says(' beginning with a space', /You said/)
  first.write(KEY.ctrl('d'))
  await first.exit()
  const folder = join(cwd, 'state/uamp')
  for (const name of await readdir(folder)) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600)
  expect(await readFile(join(folder, 'history'), 'utf8')).toBe('"remember me"\n')
  const second = await opened([url], { cwd })
  await second.says(KEY.up, /You said: remember me/)
})

test('pictures are shown by terminals that can, in their own words', async () => {
  const terminal = await opened([url], { env: { TERM: 'xterm-kitty' } })
  await terminal.says('//image', /Here is an image/)
  expect(terminal.painted).toContain('\u001B_Ga=T,f=100,m=0;iVBOR')
  const other = await opened()
  await other.says('//image', /\[image png One orange pixel saved\s+as\s+[^\]]+\.\s*p\s*n\s*g\]\nHere/)
})

test('what is typed before the agent is loaded is the first message', async () => {
  const cwd = await home({ 'agent.ts': AGENT })
  const terminal = new Terminal(['chat', 'agent.ts', '--data', 'memory'], { cwd, env: { HOME: cwd, XDG_STATE_HOME: cwd } })
  await terminal.prints(/> /)
  terminal.write(`early${KEY.enter}`)
  await terminal.answers(/writer listens[^]*> early\n[^]*I heard "early"/)
})
