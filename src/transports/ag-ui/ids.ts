/** The id of a message in a response's answer. It holds the response's, so that a message which a client sends back is known. */
export function idIn(response: string, place: string | number): string {
  return `${response}.${place}`
}

/** The response that a message is of; undefined for what is not ours. */
export function responseOf(id: string): string | undefined {
  return /^(resp_[^.]+)\.[\w.]+$/.exec(id)?.[1]
}

/** Stands in the ids of a response's events, whose numbers alone are those of other threads too. */
export function markOf(response: string): string {
  return response.replaceAll(/\W/g, '').slice(-6)
}

/** The interrupt that asks for money has no id of its own. */
export function paymentId(response: string): string {
  return idIn(response, 'payment')
}
