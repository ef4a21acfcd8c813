import { AgentSession } from '@tapetree/agent'
import { AgentDriver, LiveSession } from '@tapetree/server'
import { AcpAgent } from '@tapetree/server/acp'
import { memoryStore } from '@tapetree/session'
import { expect, vi } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { patiently } from './hosted-session.ts'

/** Answers `initialize` and `session/new` with its process id as the id of the session, and never a prompt. */
const program = `
  let rest = ''
  process.stdin.on('end', () => process.exit())
  process.stdin.on('data', (chunk) => {
    const lines = (rest + chunk).split('\\n')
    rest = lines.pop()
    for (const { id, method } of lines.map((line) => JSON.parse(line))) {
      const result = { initialize: { protocolVersion: 1 }, 'session/new': { sessionId: String(process.pid) } }[method]
      if (result) console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
  })
`

verifies(
  ['session-management/owner acp-process'],
  'a live session owns the process of a foreign agent: it starts with the first prompt and ends with the session',
  async () => {
    const { PATH = '' } = process.env
    const agent = { command: process.execPath, args: ['-e', program], env: { PATH } }
    const foreign = new AcpAgent({ name: 'silent', program: agent, cwd: process.cwd() })
    const session = await AgentSession.open({ store: memoryStore(), foreign, cwd: process.cwd() })
    const driver = new AgentDriver({ agent: session, close: () => foreign.close() })
    const live = await LiveSession.open(driver)
    await live.perform('1', 'me', { op: 'prompt', args: { text: 'Hi.' } })
    const started = await vi.waitFor(async () => {
      const path = await live.session.getContextPath()
      const custom = path.find((entry) => entry.type === 'custom')
      expect(custom).toBeDefined()
      return Number(custom?.custom.data['sessionId'])
    }, patiently)
    expect(isAlive(started)).toBe(true)
    await live.close()
    expect(isAlive(started)).toBe(false)
  },
)

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
