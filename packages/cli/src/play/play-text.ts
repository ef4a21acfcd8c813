import type { PlaybackEvent } from '@tapetree/session'
import { callArgument, contentText } from '../text/content-text.ts'
import type { Styles } from '../command-line/color.ts'
import { counted } from '../text/amounts.ts'
import { harmless } from '../text/harmless.ts'

const maxOutputLines = 20
const maxThoughtLines = 10

/** An event for a terminal: time, author, content. Cuts long output; the session has all of it. */
export function eventText(event: PlaybackEvent, styles: Styles): string {
  const { dim, bold, cyan, green, red, yellow } = styles
  const time = dim(clockOf(event.timestamp))
  const line = (who: string, text: string): string => `${time} ${who} ${indented(harmless(text))}\n`
  switch (event.type) {
    case 'session_start':
      return line(dim('start'), event.cwd ?? '')
    case 'session_end':
      return line(dim('end'), event.reason)
    case 'user_prompt':
      return line(bold(cyan('user')), `${event.text}${imagesText(event.images.length)}`)
    case 'agent_message':
      return line(bold(green('agent')), `${event.text}${imagesText(event.images.length)}`)
    case 'agent_thought':
      return event.text === '' ? '' : line(dim('thought'), clipped(event.text, maxThoughtLines))
    case 'tool_call':
      return line(yellow('call'), `${event.name} ${callArgument(event)}`)
    case 'tool_call_update':
      if (event.status === 'running') return ''
      return line(
        event.status === 'failed' ? red('failed') : dim('result'),
        clipped(contentText(event.output), maxOutputLines),
      )
    case 'plan':
      return line(dim('plan'), event.items.map(({ text, status }) => `[${status}] ${text}`).join('\n'))
    case 'permission':
      if (event.status === 'requested') return line(yellow('asks'), `${event.tool}: ${event.title}`)
      return line(yellow('answer'), event.status)
    case 'file_read':
      return line(dim('read'), `${event.path} (${event.size} bytes)`)
    case 'file_write':
      return line(dim('wrote'), `${event.path} (${event.size} bytes)`)
    case 'error':
      return line(red('error'), event.message)
    default:
      return event satisfies never
  }
}

/** In local time. */
export function clockOf(timestamp: string): string {
  const time = new Date(timestamp)
  return Number.isNaN(time.getTime()) ? '--:--:--' : time.toTimeString().slice(0, 8)
}

function indented(text: string): string {
  return text.trimEnd().replaceAll(/\n(?=[^\n])/g, `\n${' '.repeat(9)}`)
}

function clipped(text: string, lines: number): string {
  const all = text.split('\n')
  return all.length <= lines
    ? text
    : [...all.slice(0, lines), `… ${counted(all.length - lines, 'more line')}`].join('\n')
}

function imagesText(count: number): string {
  return count === 0 ? '' : ` (${counted(count, 'image')})`
}
