// Takes the claim of every spool folder that it reads from standard input, and prints whether it succeeded.
import { createInterface } from 'node:readline'
import { takeClaim } from '../claim.ts'

for await (const spool of createInterface({ input: process.stdin })) {
  process.stdout.write(`${takeClaim(spool, 1, { by: 'supervisor', mark: '' })}\n`)
}
