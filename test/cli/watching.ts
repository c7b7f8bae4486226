import { Cli, type Serving } from './run.ts'

/** A server that loads its agents again when their files change. */
export async function watching(args: readonly string[], cwd: string): Promise<Serving> {
  const cli = new Cli([...args, '--port', '0'], { cwd, env: { UAMP_DATA: 'memory' } })
  const [, url = ''] = await cli.prints(/ at (http:\/\/\S+)[^]*npx uamp chat/)
  return { cli, url }
}

/** Waits until the agents were loaded again so often. */
export async function reloads({ cli }: Serving, times: number): Promise<void> {
  await cli.prints(new RegExp(`(was read again: one changed[^]*){${times}}`))
}
