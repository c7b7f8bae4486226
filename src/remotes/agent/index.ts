export { remoteAgent, type RemoteAgentOptions } from '../agent.ts'
