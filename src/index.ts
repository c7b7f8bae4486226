/** Write an agent once; every protocol can talk to it. */
export { Agent, type AgentInit } from './agents/agent.ts'
export { AgentRegistry } from './core/engine/agent-registry.ts'
export { Channel } from './core/agent-kit/channel.ts'
export { defineAgent, type AgentOptions } from './core/agent-kit/define-agent.ts'
export { audio, file, image, progress, thinking, video, type Source } from './core/agent-kit/content.ts'
export { activity, state, step, text } from './core/agent-kit/drafts.ts'
export { wrap, type Layer, type Next } from './core/agent-kit/wrap.ts'
export { exchange, type Exchange } from './core/agent-kit/exchange.ts'
export { http, websocket, type JsonSocket } from './core/agent-kit/own-routes.ts'
export { createGateway } from './core/engine/gateway.ts'
export type { AgentGateway, GatewayOptions } from './core/engine/gateway-options.ts'
export type { CoreLimits } from './core/basics/limits.ts'
export { Router, type RouterOptions } from './core/agent-kit/router.ts'
export type { JsonSchema } from './core/tools/json-schema.ts'
export type { StandardSchema } from './core/tools/standard-schema.ts'
export { defineTool } from './core/tools/tool.ts'
export { toolRunner, type ToolRunner, type ToolRunnerOptions } from './core/tools/tool-loop.ts'
export type { Access, Action, Credentials, Principal } from './core/ports/access.ts'
export type { AgentPort, AskOptions, QuestionDraft, Questions, Said, Turn } from './core/ports/agent.ts'
export type { HttpAnswer, HttpClient, HttpRequest } from './core/ports/http.ts'
export type { Keys } from './core/ports/keys.ts'
export type { ModelContext, ModelRequest, Provider } from './core/ports/provider.ts'
export type { Redaction } from './core/ports/redaction.ts'
export type { Batch, Gateway, Logged, Reader, ReadOptions, Session, SessionInit, SessionSummary } from './core/ports/session.ts'
export type {
  Handler,
  HandlerTurn,
  Hooks,
  Observer,
  Prompt,
  RoutedEvent,
  Skill,
  Tool,
  ToolContext,
  ToolOutput,
} from './core/ports/skill.ts'
export type { Group, Operation, Page, PageRequest, SetOptions, Store, Stored } from './core/ports/store.ts'
export type { Shelf, TurnStore } from './core/ports/turn-store.ts'
export type {
  Agents,
  Call,
  Host,
  HttpRoute,
  KnownCall,
  Logger,
  Route,
  Socket,
  SocketRoute,
  Streamed,
  Texts,
  Transport,
} from './core/ports/transport.ts'
export type { Capabilities } from './protocol/capabilities.ts'
export type { ContentItem, MediaItem, ToolCall, ToolResult } from './protocol/content.ts'
export { UampError, type ErrorCode } from './protocol/errors.ts'
export type { ClientEvent, Draft, EventOf, ServerEvent } from './protocol/events.ts'
export type { Json } from './protocol/json.ts'
export type { Message } from './protocol/message.ts'
export type { ResponseFormat, SessionConfig } from './protocol/session-config.ts'
export type { SystemEvent } from './protocol/system-events.ts'
export type { ToolDefinition } from './protocol/tools.ts'
export type { Usage } from './protocol/usage.ts'
export { UAMP_VERSION } from './protocol/version.ts'
