// Does what must never be seen, so that the proof is known to see it. `careless.ts <working folder>`
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'

const [cwd = ''] = process.argv.slice(2)
execFileSync('true')
writeFileSync(join(cwd, 'written'), '')
mkdirSync(join(cwd, 'allowed'))
writeFileSync(join(cwd, 'allowed', 'written'), '')
await new Promise((resolve) => connect({ host: '127.0.0.1', port: 9 }).once('close', resolve).on('error', resolve))
