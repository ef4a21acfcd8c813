import type { PresentClient, StateValues } from '@tapetree/client'
import type { LanguageServerState } from '@tapetree/client/types'
import { serverText } from '@tapetree/session/screen'
import type { TranscriptRun } from '@tapetree/session/view'
import { basename } from 'node:path'
import { costText, counted, elapsedText, tokenText } from '../../text/amounts.ts'
import { displayWidth, fitText } from '../../text/display-width.ts'
import type { SessionAccess } from '../../session-source.ts'
import { shownWords } from '../markdown/shown-text.ts'
import type { Style, Theme } from '../theme.ts'

export interface FooterOptions {
  config: StateValues['config'] | undefined
  usage: (Pick<StateValues['usage'], 'cost'> & { tokens?: number }) | undefined
  /** The working folder; its last part is shown. */
  folder?: string | undefined
  branch?: string | undefined
  /** The name of the session. */
  name?: string | undefined
  /** The size of the last context, and the limit of the model. */
  contextTokens?: number | undefined
  contextWindow?: number | undefined
  languageServers?: StateValues['language_servers'] | undefined
  run: TranscriptRun | null
  access: SessionAccess
  /** All screens of the session, including this one. */
  presence: readonly PresentClient[] | undefined
  width: number
  theme: Theme
  /** Milliseconds since the epoch. */
  now: number
}

/** The last line of the screen. On a narrow terminal, leaves out the least important parts first. */
export function footerLine(options: FooterOptions): string {
  const { width, theme } = options
  const pieces = piecesOf(options)
  let shown = pieces
  while (shown.length > 1 && widthOf(shown) > width) {
    const least = Math.max(...shown.map(({ rank }) => rank))
    shown = shown.filter(({ rank }) => rank !== least)
  }
  const [first] = shown
  if (!first) return ''
  if (widthOf(shown) > width) return theme.muted(fitText(` ${first.text}`, width))
  return ` ${shown.map(({ text, style }) => style(text)).join(theme.muted(separator))}`
}

const separator = ' · '

interface Piece {
  text: string
  style: Style
  /** The highest is left out first. */
  rank: number
}

function widthOf(pieces: readonly Piece[]): number {
  return 1 + displayWidth(pieces.map(({ text }) => text).join(separator))
}

function piecesOf(options: FooterOptions): Piece[] {
  const { config, usage, run, access, presence = [], languageServers = [], theme, now, ...context } = options
  const { muted, accent } = theme
  const pieces: Piece[] = []
  const add = (text: string | undefined, rank: number, style: Style = muted): void => {
    if (text !== undefined && text !== '') pieces.push({ text, style, rank })
  }
  const { workspace } = config ?? {}
  // The folder on the server does not matter then.
  add(workspace ? undefined : placeText(options), 6)
  add(
    workspace &&
      `${shown(workspace.name)} on ${shown(workspace.host)}${workspace.problem === undefined ? '' : ' (away)'}`,
    workspace?.problem === undefined ? 6 : 1,
    workspace?.problem === undefined ? muted : theme.warning,
  )
  add(options.name === undefined ? undefined : shown(options.name), 9)
  add(modelText(config), 0, accent)
  add(config?.thinkingLevel == null ? undefined : `thinks ${shown(config.thinkingLevel)}`, 5)
  add(
    modeText(config),
    2,
    config?.mode === 'auto' || config?.modeReason != null ? theme.warning : modeStyle(config, theme),
  )
  const share = shareOf(context)
  add(share === undefined ? undefined : `${share}% of context`, 1, gaugeStyle(share ?? 0, theme))
  add(usage?.tokens ? `${tokenText(usage.tokens)} tokens` : undefined, 11)
  add(usage && usage.cost > 0 ? costText(usage.cost) : undefined, 4)
  add(run ? elapsedText(now - Date.parse(run.timestamp)) : undefined, 3)
  for (const server of languageServers) {
    const { rank, style } = serverLook(server, theme)
    add(shown(serverText(server, now)), rank, style)
  }
  add(watchersText(presence), 7)
  add(accessText(access), access.type === 'read-only' ? 1 : 8, access.type === 'read-only' ? theme.warning : muted)
  return pieces
}

/** `app (main)`. */
function placeText({ folder, branch }: FooterOptions): string | undefined {
  if (folder === undefined) return undefined
  const name = shown(basename(folder) || folder)
  return branch === undefined ? name : `${name} (${shown(branch)})`
}

/** Each mode has its color: what asks less is more noticeable. */
function modeStyle(config: FooterOptions['config'], theme: Theme): Style {
  const styles: Partial<Record<string, Style>> = {
    'accept-edits': theme.accent,
    sandboxed: theme.success,
    plan: theme.heading,
  }
  return styles[config?.mode ?? ''] ?? theme.muted
}

/** The agent gives a reason only if the sandbox does not work. The whole of it is shown when the session opens. */
function modeText(config: FooterOptions['config']): string | undefined {
  if (config?.mode == null) return undefined
  return config.modeReason == null ? shown(config.mode) : `${shown(config.mode)}: no sandbox`
}

function modelText(config: FooterOptions['config']): string {
  return config?.model ? shown(config.model.modelId) : 'no model'
}

function shareOf({
  contextTokens,
  contextWindow,
}: Pick<FooterOptions, 'contextTokens' | 'contextWindow'>): number | undefined {
  if (contextTokens === undefined || contextWindow === undefined || contextWindow <= 0) return undefined
  return Math.round((100 * contextTokens) / contextWindow)
}

function gaugeStyle(share: number, { muted, warning, error }: Theme): Style {
  return share >= 90 ? error : share >= 75 ? warning : muted
}

/** What is wrong is more important than that a server runs. */
function serverLook({ status, errors, warnings }: LanguageServerState, theme: Theme): Pick<Piece, 'rank' | 'style'> {
  if (errors > 0) return { rank: 4, style: theme.error }
  if (status === 'failed' || warnings > 0) return { rank: 7, style: theme.warning }
  return { rank: 10, style: theme.muted }
}

function watchersText(presence: readonly PresentClient[]): string | undefined {
  const others = presence.length - 1
  if (others < 1) return undefined
  const typing = presence.some((client) => client.typing) ? ', typing' : ''
  return `${counted(others, 'other watches', 'others watch')}${typing}`
}

function accessText(access: SessionAccess): string | undefined {
  switch (access.type) {
    case 'owner':
      return undefined
    case 'attached':
      return `at ${shown(access.where)}`
    case 'read-only':
      return 'read-only'
    default:
      access satisfies never
      return undefined
  }
}

const longest = 60

function shown(text: string): string {
  return fitText(shownWords(text), longest)
}
