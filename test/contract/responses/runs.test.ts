import { contract } from './contract.ts'
import { a2a03, a2a1 } from './transports/a2a.ts'
import { agUi } from './transports/ag-ui.ts'

contract([a2a1, a2a03, agUi])
