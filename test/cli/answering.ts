/** Asks for an answer and waits for its first piece. */
export async function answering(url: string, text: string): Promise<{ whole: Promise<string> }> {
  const body = JSON.stringify([{ type: 'session.create' }, { type: 'input.text', text }, { type: 'response.create' }])
  const response = await fetch(`${url}/events`, { method: 'POST', headers: { accept: 'text/event-stream' }, body })
  const decoder = new TextDecoder()
  let heard = ''
  let begun!: () => void
  const first = new Promise<void>((resolve) => (begun = resolve))
  const read = async (): Promise<string> => {
    for await (const chunk of response.body ?? []) {
      heard += decoder.decode(chunk, { stream: true })
      if (heard.includes('response.delta')) begun()
    }
    return heard
  }
  const whole = read()
  await Promise.race([first, whole])
  return { whole }
}
