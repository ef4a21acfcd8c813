import type { Transcript } from '@tapetree/session/view'
import { basename } from 'node:path'
import { costText, counted, tokenText } from '../../text/amounts.ts'
import { displayWidth, fitText, padded } from '../../text/display-width.ts'
import { shownWords } from '../markdown/shown-text.ts'
import type { Style, Theme } from '../theme.ts'
import type { TaskNews } from './item-context.ts'

export interface SidebarOptions {
  /** The name of the session. */
  name: string | undefined
  folder: string | undefined
  branch: string | undefined
  contextTokens: number | undefined
  contextWindow: number | undefined
  tokens: number
  /** In US dollars, with subagents. */
  cost: number
  plan: Transcript['plan']
  work: SessionWork
  subagents: readonly NamedTask[]
  theme: Theme
  width: number
  rows: number
}

/** What the loaded part of a session has changed and started. */
export interface SessionWork {
  files: readonly { path: string; added: number; removed: number }[]
  jobs: readonly { command: string; state: string; isRunning: boolean }[]
}

export interface NamedTask extends TaskNews {
  /** Of its session. */
  id: string
  name: string
  isRunning: boolean
}

export interface SidebarRow {
  text: string
  /** The session of the subagent that the row is about. */
  subagentId?: string
}

/** Beside the conversation on a wide screen: what the session is doing, and what it has done. As many as there are rows. */
export function sidebarRows(options: SidebarOptions): SidebarRow[] {
  const { rows } = options
  const sections = [
    plain(headOf(options)),
    plain(contextOf(options)),
    plain(tasksOf(options)),
    plain(filesOf(options)),
    subagentsOf(options),
    plain(jobsOf(options)),
  ]
  const all = sections.filter((section) => section.length > 0).flatMap((section) => [...section, empty])
  const more = all.length > rows ? [{ text: options.theme.muted('…') }] : []
  const shown = [...all.slice(0, rows - more.length), ...more]
  return Array.from({ length: rows }, (_, row) => shown[row] ?? empty)
}

const empty: SidebarRow = { text: '' }

function plain(lines: readonly string[]): SidebarRow[] {
  return lines.map((text) => ({ text }))
}

/** Each list shows this many; the rest is counted. */
const most = 8

function headOf({ name, folder, branch, theme, width }: SidebarOptions): string[] {
  const place = folder === undefined ? '' : `${basename(folder) || folder}${branch === undefined ? '' : ` (${branch})`}`
  const title = name ?? ''
  return [
    ...(title === '' ? [] : [theme.strong(fitText(shownWords(title), width))]),
    ...(place === '' ? [] : [theme.muted(fitText(shownWords(place), width))]),
  ]
}

function contextOf({ contextTokens, contextWindow, tokens, cost, theme, width }: SidebarOptions): string[] {
  const used = tokens > 0 ? `${tokenText(tokens)} tokens${cost > 0 ? ` · ${costText(cost)}` : ''}` : ''
  const total = used === '' ? [] : [theme.muted(fitText(used, width))]
  if (contextTokens === undefined || contextWindow === undefined || contextWindow <= 0) return total
  const share = Math.min(1, contextTokens / contextWindow)
  const percent = Math.round(share * 100)
  const filled = Math.round(share * barWidth)
  const style = percent >= 90 ? theme.error : percent >= 75 ? theme.warning : theme.accent
  const bar = `${style('█'.repeat(filled))}${theme.border('░'.repeat(barWidth - filled))}`
  return [theme.heading('Context'), `${bar} ${percent}% of ${tokenText(contextWindow)}`, ...total]
}

const barWidth = 12

function tasksOf({ plan, theme, width }: SidebarOptions): string[] {
  if (plan.length === 0) return []
  const done = plan.filter(({ status }) => status === 'completed').length
  // What is done is the first to give way.
  const first = Math.max(0, Math.min(done - 1, plan.length - most))
  const rows = plan.slice(first, first + most).map(({ text, status }) => {
    const [sign, style] = taskLooks(theme)[status]
    return style(fitText(`${sign} ${shownWords(text)}`, width))
  })
  return [
    theme.heading(`Tasks: ${done} of ${plan.length} done`),
    ...rows,
    ...moreOf(plan.length - first, 'task', theme),
  ]
}

function taskLooks({ muted, strong }: Theme): Record<Transcript['plan'][number]['status'], [string, Style]> {
  return { completed: ['✓', muted], in_progress: ['▸', strong], pending: ['○', (text) => text] }
}

function filesOf({ work: { files }, theme, width }: SidebarOptions): string[] {
  if (files.length === 0) return []
  const rows = files.slice(0, most).map(({ path, added, removed }) => {
    const counts = `+${added} −${removed}`
    const room = Math.max(8, width - displayWidth(counts) - 1)
    return `${padded(endOf(shownWords(path), room), room)} ${theme.diffAdded(`+${added}`)} ${theme.diffRemoved(`−${removed}`)}`
  })
  return [theme.heading(counted(files.length, 'changed file')), ...rows, ...moreOf(files.length, 'file', theme)]
}

/** The end of a path says more than its beginning. */
function endOf(path: string, room: number): string {
  if (displayWidth(path) <= room) return path
  const name = path.slice(path.lastIndexOf('/') + 1)
  return displayWidth(name) + 2 <= room ? `…/${name}` : fitText(name, room)
}

function subagentsOf({ subagents, theme, width }: SidebarOptions): SidebarRow[] {
  if (subagents.length === 0) return []
  const rows = subagents.slice(0, most).flatMap(({ id, name, text, isRunning, tokens, cost }) => {
    const used = [tokens ? `${tokenText(tokens)} tokens` : '', cost > 0 ? costText(cost) : '']
      .filter(Boolean)
      .join(' · ')
    const sign = isRunning ? theme.accent('●') : theme.success('✓')
    const below = [isRunning ? shownWords(text) : '', used].filter((each) => each !== '').join(' · ')
    return [
      { text: `${sign} ${fitText(shownWords(name), width - 2)}`, subagentId: id },
      ...(below === '' ? [] : [{ text: theme.muted(`  ${fitText(below, width - 2)}`), subagentId: id }]),
    ]
  })
  return [{ text: theme.heading('Subagents') }, ...rows, ...plain(moreOf(subagents.length, 'subagent', theme))]
}

function jobsOf({ work: { jobs }, theme, width }: SidebarOptions): string[] {
  if (jobs.length === 0) return []
  const rows = jobs.slice(0, most).map(({ command, state, isRunning }) => {
    const sign = isRunning ? theme.accent('●') : state === 'exit code 0' ? theme.success('✓') : theme.error('✗')
    const note = isRunning ? '' : ` · ${shownWords(state)}`
    return `${sign} ${fitText(shownWords(command), Math.max(8, width - 2 - displayWidth(note)))}${theme.muted(note)}`
  })
  return [theme.heading('Background jobs'), ...rows, ...moreOf(jobs.length, 'job', theme)]
}

function moreOf(count: number, what: string, theme: Theme): string[] {
  return count > most ? [theme.muted(`… ${counted(count - most, `more ${what}`)}`)] : []
}
