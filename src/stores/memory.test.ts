import { storeContract } from '../../test/contract/store.ts'
import { memoryStore } from './memory.ts'

storeContract('memory', (now) => memoryStore({ now }))
