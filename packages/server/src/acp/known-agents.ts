import { commandEnvironment, type AgentProgramSettings } from '@tapetree/agent/foreign'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { AgentProgram } from './acp-agent.ts'

/** Agents that need no settings if their program is installed. Settings of the same name replace them. */
const knownAgents: Readonly<Record<string, Preset>> = {
  'claude-agent-acp': preset('claude-agent-acp', [], ['ANTHROPIC_*', 'CLAUDE_*'], ['~/.claude', '~/.claude.json']),
  'codex-acp': preset('codex-acp', [], ['OPENAI_*', 'CODEX_*'], ['~/.codex']),
  gemini: preset('gemini', ['--acp'], ['GEMINI_*', 'GOOGLE_*'], ['~/.gemini']),
  opencode: preset(
    'opencode',
    ['acp'],
    ['*_API_KEY', 'OPENCODE_*'],
    ['~/.config/opencode', '~/.local/share/opencode', '~/.local/state/opencode', '~/.cache/opencode'],
  ),
  'pi-acp': preset('pi-acp', [], ['*_API_KEY', 'PI_*'], ['~/.pi']),
  qwen: preset('qwen', ['--acp'], ['OPENAI_*', 'DASHSCOPE_*', 'QWEN_*'], ['~/.qwen']),
}

type Preset = AgentProgramSettings

function preset(command: string, args: string[], pass: string[], folders: string[]): Preset {
  return { command, args, env: { pass, set: {} }, folders }
}

/** Our own agent, in lists of agents. */
export const ownAgent = 'tapetree'

/** An agent for new sessions. */
export interface ListedAgent {
  id: string
  name: string
  description: string
}

/** The agents for new sessions, ours first: those of the settings, and known ones whose program is installed. */
export function listAgents(
  agents: Readonly<Record<string, AgentProgramSettings>>,
  env: Readonly<Record<string, string | undefined>>,
): ListedAgent[] {
  const installed = Object.entries(knownAgents).filter(
    ([name, { command }]) => !Object.hasOwn(agents, name) && isInstalled(command, env),
  )
  const others = [...Object.entries(agents), ...installed].map(([name, { command, args }]) => {
    return { id: name, name, description: [command, ...args].join(' ') }
  })
  return [{ id: ownAgent, name: ownAgent, description: 'The agent of tapetree' }, ...others]
}

function isInstalled(command: string, { PATH = '' }: Readonly<Record<string, string | undefined>>): boolean {
  return PATH.split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, command)))
}

export interface FoundAgent {
  program: AgentProgram
  /** Absolute. */
  folders: string[]
}

/** How to start an agent of this name. Undefined if there is none. It sees the variables that every program needs, and those it names. */
export function findAgent(
  name: string,
  agents: Readonly<Record<string, AgentProgramSettings>>,
  { env, home = homedir() }: { env: Readonly<Record<string, string | undefined>>; home?: string | undefined },
): FoundAgent | undefined {
  const found = Object.hasOwn(agents, name) ? agents[name] : knownAgents[name]
  if (!found) return undefined
  const { command, args, env: variables, folders } = found
  const isPassed = (variable: string): boolean => variables.pass.some((pattern) => matches(variable, pattern))
  const pass = Object.keys(env).filter(isPassed)
  return {
    program: { command, args, env: commandEnvironment(env, { pass, set: variables.set }) },
    folders: folders.map((folder) => folder.replace(/^~(?=\/|$)/, () => home)).map((folder) => join(folder)),
  }
}

/** A `*` at the beginning or the end stands for anything. */
function matches(variable: string, pattern: string): boolean {
  if (pattern.startsWith('*')) return variable.endsWith(pattern.slice(1))
  return pattern.endsWith('*') ? variable.startsWith(pattern.slice(0, -1)) : variable === pattern
}
