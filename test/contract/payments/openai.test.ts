import { contract } from './contract.ts'
import { OPENAI } from './drivers/openai.ts'

contract(OPENAI)
