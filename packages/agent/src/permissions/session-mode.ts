import type { Cause, Session } from '@tapetree/session'
import { isWider, narrowest, permissionModes, type PermissionMode } from './modes.ts'

export interface SessionModeOptions {
  session: Session
  /** For a session whose log has no mode. */
  defaultMode: PermissionMode
}

/**
 * The permission mode of one session, recorded in its log. A wider mode takes effect once its record is durable, a
 * narrower one at once, so no crash leaves a mode that is wider than the one the user last saw.
 */
export class SessionMode {
  readonly #options: SessionModeOptions
  /** Requested modes that are not in the log: still being written, or lost to a failed write. */
  readonly #pending = new Set<{ readonly mode: PermissionMode }>()

  constructor(options: SessionModeOptions) {
    this.#options = options
  }

  get current(): PermissionMode {
    return narrowest(this.#recorded, ...[...this.#pending].map(({ mode }) => mode))
  }

  /** Resolves when the change is durable. If it cannot be stored, a narrower mode stays in force in this process. */
  async set(mode: PermissionMode, cause?: Cause, reason?: string): Promise<void> {
    if (!permissionModes.includes(mode)) throw new TypeError(`There is no permission mode ${mode}.`)
    const before = [...this.#pending]
    const request = { mode }
    this.#pending.add(request)
    await this.#options.session.append(
      { type: 'permission_mode', permissionMode: { mode, ...(reason !== undefined && { reason }) } },
      cause && { cause },
    )
    for (const settled of [...before, request]) this.#pending.delete(settled)
  }

  /** Records the mode at the start of the session, if one is requested or the recorded mode is wider than `maxMode`. */
  async begin({ mode, maxMode }: { mode?: PermissionMode; maxMode?: PermissionMode }): Promise<void> {
    const { session } = this.#options
    if (mode !== undefined && mode !== session.permissionMode) await this.set(mode)
    else if (maxMode !== undefined && isWider(this.#recorded, maxMode)) await this.set(maxMode)
  }

  /** An unknown mode is treated as `ask`, or as the default if that is narrower. */
  get #recorded(): PermissionMode {
    const { session, defaultMode } = this.#options
    const { permissionMode } = session
    if (permissionMode === undefined) return defaultMode
    return permissionModes.find((mode) => mode === permissionMode) ?? narrowest('ask', defaultMode)
  }
}
