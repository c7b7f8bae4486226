/** The part of `oidc-provider` that the tests use; the package has no types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http'

  class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
  }
  export { Provider as default }
}
