/** The id of a message in a response's answer. It holds the response's, so that a message which a client sends back is known. */
export function idIn(response: string, place: string | number): string {
  return `${response}.${place}`
}

/** The response that a message is of; undefined for what is not ours. */
export function responseOf(id: string): string | undefined {
  return /^(resp_[^.]+)\.[\w.]+$/.exec(id)?.[1]
}

/** The interrupt that asks for money has no id of its own. */
export function paymentId(response: string): string {
  return idIn(response, 'payment')
}
