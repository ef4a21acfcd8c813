import type { SandboxPlace } from '@tapetree/agent/sandbox'
import { configFolder } from '@tapetree/agent/settings'
import { tmpdir, userInfo } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Io } from '../command-line/io.ts'

/** Where the user's files are. `TAPETREE_HOME` puts all of them in one folder; otherwise XDG decides. */
export interface Places {
  /** Settings, credentials, grants. */
  config: string
  /** The sessions. */
  sessions: string
  /** File snapshots of the folders in which sessions work. */
  workspaces: string
  /** Copies of those folders, in which variants work. */
  copies: string
  /** What commands in the sandbox write outside of the working folder. */
  sandbox: string
  /** Composer history, server tokens, certificates. */
  state: string
  /** Sockets. Short, because a socket path is limited to about 100 bytes. */
  runtime: string
}

export function placesOf({ home, env }: Pick<Io, 'home' | 'env'>): Places {
  const config = configFolder({ home, env })
  const runtime = runtimeFolder(env)
  const { TAPETREE_HOME: own } = env
  if (own !== undefined && isAbsolute(own)) {
    return {
      config,
      sessions: join(own, 'sessions'),
      workspaces: join(own, 'workspaces'),
      copies: join(own, 'copies'),
      sandbox: join(own, 'sandbox'),
      state: join(own, 'state'),
      runtime,
    }
  }
  const data = absoluteOr(env['XDG_DATA_HOME'], join(home, '.local', 'share'))
  const state = absoluteOr(env['XDG_STATE_HOME'], join(home, '.local', 'state'))
  return {
    config,
    sessions: join(data, 'tapetree', 'sessions'),
    workspaces: join(data, 'tapetree', 'workspaces'),
    copies: join(data, 'tapetree', 'copies'),
    sandbox: join(data, 'tapetree', 'sandbox'),
    state: join(state, 'tapetree'),
    runtime,
  }
}

/** No command may read keys, tokens and the logs of other sessions. */
export function sandboxPlaceOf({
  sandbox,
  config,
  sessions,
  workspaces,
  copies,
  state,
  runtime,
}: Places): SandboxPlace {
  return { folder: sandbox, own: [config, sessions, workspaces, copies, state, runtime] }
}

/** Ignores relative paths in variables: they would depend on the working folder. */
function absoluteOr(path: string | undefined, otherwise: string): string {
  return path !== undefined && isAbsolute(path) ? path : otherwise
}

function runtimeFolder(env: Io['env']): string {
  const { XDG_RUNTIME_DIR: runtime } = env
  if (runtime !== undefined && isAbsolute(runtime) && runtime.length < 60) return join(runtime, 'tapetree')
  return join(tmpdir(), `tapetree-${userInfo().uid}`)
}
