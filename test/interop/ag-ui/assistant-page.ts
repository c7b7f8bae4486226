/** A page with assistant-ui, as its documentation builds one. `?url=` is the address of the agent. */
export const PAGE = `
import { createElement as h, useMemo } from 'react'
import { createRoot } from 'react-dom/client'
import { ActionBarPrimitive, AssistantRuntimeProvider, BranchPickerPrimitive, ComposerPrimitive, MessagePrimitive, ThreadPrimitive, useAssistantTool } from '@assistant-ui/react'
import { useAgUiRuntime } from '@assistant-ui/react-ag-ui'
import { HttpAgent } from 'ag-ui-059'

const url = new URLSearchParams(location.search).get('url')
globalThis.colors = []

const Text = ({ text }) => h('span', { className: 'text' }, text)
const Reasoning = ({ text }) => h('em', null, text)
const Tool = ({ toolName, argsText, result }) => h('code', { className: 'tool' }, toolName + ' ' + argsText + ' = ' + JSON.stringify(result))
const components = { Text, Reasoning, tools: { Fallback: Tool } }

const User = () =>
  h(MessagePrimitive.Root, { className: 'user' },
    h(MessagePrimitive.Parts, { components }),
    h(ActionBarPrimitive.Root, null, h(ActionBarPrimitive.Edit, { className: 'edit' }, 'Edit')),
    h(BranchPickerPrimitive.Root, { hideWhenSingleBranch: true, className: 'branches' },
      h(BranchPickerPrimitive.Previous, { className: 'previous' }, '<'),
      h(BranchPickerPrimitive.Number), ' of ', h(BranchPickerPrimitive.Count)))

const Edit = () =>
  h(ComposerPrimitive.Root, { className: 'editing' },
    h(ComposerPrimitive.Input, { className: 'edited' }),
    h(ComposerPrimitive.Send, { className: 'save' }, 'Save'))

const Assistant = () =>
  h(MessagePrimitive.Root, { className: 'assistant' },
    h(MessagePrimitive.Parts, { components }),
    h(MessagePrimitive.Error, null, h('strong', { className: 'error' }, 'It failed')),
    h(ActionBarPrimitive.Root, null, h(ActionBarPrimitive.Reload, { className: 'reload' }, 'Again')))

function Thread() {
  useAssistantTool({
    toolName: 'color',
    description: 'Changes the colour of the page',
    parameters: { type: 'object', properties: { to: { type: 'string' } } },
    execute: async ({ to }) => {
      globalThis.colors.push(to)
      document.body.style.background = to
      return 'It is ' + to + ' now'
    },
  })
  return h(ThreadPrimitive.Root, null,
    h(ThreadPrimitive.Viewport, null,
      h(ThreadPrimitive.Messages, { components: { UserMessage: User, AssistantMessage: Assistant, EditComposer: Edit } }),
      h(ComposerPrimitive.Root, null,
        h(ComposerPrimitive.Input, { className: 'say', placeholder: 'Say something' }),
        h(ThreadPrimitive.If, { running: false }, h(ComposerPrimitive.Send, { className: 'send' }, 'Send')),
        h(ThreadPrimitive.If, { running: true }, h(ComposerPrimitive.Cancel, { className: 'stop' }, 'Stop')))))
}

function App() {
  const agent = useMemo(() => new HttpAgent({ url }), [])
  const runtime = useAgUiRuntime({ agent, onError: (error) => (globalThis.failure = String(error.message)) })
  return h(AssistantRuntimeProvider, { runtime }, h(Thread))
}

createRoot(document.getElementById('root')).render(h(App))
`
