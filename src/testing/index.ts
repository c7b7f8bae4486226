/** For tests of agents: a model that follows a script, and provider traffic that was recorded once. */
export { recordHttp, type RecordOptions } from './record-http.ts'
export { type Exchange, readRecording, type RecordedLine } from './recording.ts'
export { replayHttp, type ReplayOptions } from './replay-http.ts'
export { scriptedProvider, type ScriptedOptions, type ScriptedProvider, type ScriptedTurn } from './scripted-provider.ts'
export { recordProvider, replayProvider } from './taped-provider.ts'
