import { Agent } from 'uamp'
import { serve } from 'uamp/server/node'
import { ledger } from './ledger.ts'
import { orders } from './orders.ts'

const shop = new Agent({ name: 'shop', description: 'Takes orders such as "3 apples"', skills: [orders(), ledger()] })

await serve(shop, { port: Number(process.env['PORT'] ?? 8787) })
