import { contract } from './contract.ts'
import { A2A } from './drivers/a2a.ts'
import { ACP } from './drivers/acp.ts'
import { agUi } from './drivers/ag-ui.ts'
import { omnia } from './drivers/omnia.ts'

contract([...A2A, ...ACP, agUi, omnia])
