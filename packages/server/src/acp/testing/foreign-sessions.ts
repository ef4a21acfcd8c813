import { AgentSession, allowAll, type AgentSessionOptions } from '@tapetree/agent'
import type { SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AgentDriver } from '../../drivers/agent-driver.ts'
import { serverOwner } from '../../live/driver.ts'
import type { LiveSession } from '../../live/live-session.ts'
import { LiveSessions } from '../../live/live-sessions.ts'
import { AcpAgent } from '../acp-agent.ts'

export interface ForeignSessionsOptions extends Partial<AgentSessionOptions> {
  store: SessionStore
  /** The sessions work in it, and the agent keeps its own sessions in a folder in it. */
  folder: string
  /** What the agent can do with an older session, or with a steer. */
  features?: 'load' | 'resume' | 'none' | 'steer' | 'refuse-steer'
  /** Instead of the scripted agent. */
  script?: string
}

const scriptedAgent = fileURLToPath(new URL('scripted-agent.ts', import.meta.url))

/** Live sessions whose agent is the scripted one, as a process of its own. */
export function foreignSessions({
  store,
  folder,
  features = 'load',
  script,
  ...more
}: ForeignSessionsOptions): LiveSessions {
  const state = join(folder, 'agent')
  return new LiveSessions({
    store,
    tickMs: 1,
    create: async ({ model: _model, agent: _agent, workspace: _workspace, ...header }) => {
      await using session = await store.create({ cwd: folder, ...header })
      return session.id
    },
    openDriver: async (sessionId) => {
      await mkdir(state, { recursive: true })
      const args = script === undefined ? [scriptedAgent, state, features] : ['-e', script]
      const program = { command: process.execPath, args, env: environment() }
      const foreign = new AcpAgent({ name: 'scripted', program, cwd: folder })
      const settings = { retry: { maxRetries: 3, baseMs: 1, capMs: 10, longestRetryAfterMs: 1000, jitter: 0 } }
      const agent = await AgentSession.open({
        ...{ store, sessionId, foreign, cwd: folder, gate: () => allowAll, hasSubagents: false, owner: serverOwner },
        settings,
        ...more,
      })
      return new AgentDriver({
        agent,
        slashCommands: () => foreign.commands,
        onChange: (listener) => foreign.onChange(listener),
        close: () => foreign.close(),
      })
    },
  })
}

function environment(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME }
}

/** The prompts that the agent got, for each of its sessions. */
export async function promptsOf(folder: string): Promise<string[][]> {
  const state = join(folder, 'agent')
  const files = (await readdir(state)).filter((name) => name.endsWith('.jsonl'))
  const read = files.map(async (name) => (await readFile(join(state, name), 'utf8')).split('\n').filter(Boolean))
  return (await Promise.all(read)).map((lines) => lines.map((line) => JSON.parse(line) as string))
}

/** The log in short: one word or sentence for each line that counts. */
export async function logOf({ session }: Pick<LiveSession, 'session'>): Promise<string[]> {
  const told: string[] = []
  for await (const stored of session.lines()) {
    if (stored.type === 'line') told.push(...tell(fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)))
  }
  return told
}

function tell(line: Line): string[] {
  switch (line.type) {
    case 'message':
      return line.message.content.map((block) => {
        if (block.type === 'text') return `${line.message.role}: ${block.text.content}`
        if (block.type === 'reasoning') return `thought: ${block.reasoning.text}`
        if (block.type === 'tool_use') return `call ${block.toolUse.name} ${JSON.stringify(block.toolUse.input)}`
        if (block.type === 'tool_result')
          return `${block.toolResult.isError ? 'error' : 'result'}: ${JSON.stringify(block.toolResult.content)}`
        return block.type
      })
    case 'run_end':
      return [`run_end ${line.runEnd.outcome}`]
    case 'permission_result':
      return [`permission_result ${line.permissionResult.outcome}`]
    case 'attempt':
      return [
        `attempt ${line.attempt.content.map((block) => (block.type === 'text' ? block.text.content : block.type)).join()}`,
      ]
    case 'plan':
      return [`plan ${line.plan.items.map(({ text, status }) => `${text} ${status}`).join()}`]
    case 'error':
      return [`error ${line.error.kind}`]
    case 'run_start':
    case 'tool_start':
    case 'permission_request':
    case 'file_write':
    case 'file_read':
      return [line.type]
    default:
      return []
  }
}
