import type { TreeNode } from '@tapetree/session'
import { hash } from 'node:crypto'
import { costText } from '../text/cost-text.ts'
import { counted } from '../text/counted.ts'
import { describeEntry } from '../text/describe-entry.ts'
import { fitText } from '../text/display-width.ts'
import type { Segment } from '../sessions/segments.ts'
import { escapeHtml } from './escape-html.ts'
import type { ExportedSession } from './exported-session.ts'
import { anchorOf, entryHtml } from './html-entry.ts'
import { htmlStyle } from './html-style.ts'

/**
 * One page with the tree at its side: the path that the session is on, and every branch behind it. There is no script in it, and its policy
 * lets the browser load nothing but what is inside.
 */
export async function* htmlExport(session: ExportedSession): AsyncGenerator<string> {
  const policy = `default-src 'none'; style-src 'sha256-${hash('sha256', htmlStyle, 'base64')}'; img-src data:; base-uri 'none'; form-action 'none'`
  const title = escapeHtml(session.title)
  yield (
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n` +
      `<meta http-equiv="Content-Security-Policy" content="${policy}">\n<meta name="referrer" content="no-referrer">\n` +
      `<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>${title}</title>\n<style>${htmlStyle}</style>\n</head>\n<body>\n`
  )
  yield* sidebar(session.segments)
  yield `<main>\n<h1>${title}</h1>\n<p class="about">${aboutHtml(session)}</p>\n`
  const branches = Map.groupBy(session.segments.slice(1), ({ from }) => from)
  for (const segment of session.segments) {
    yield `<section id="branch-${segment.number}">${headingHtml(segment)}\n`
    for (let start = 0; start < segment.nodes.length; start += partSize) {
      yield '<div class="part">\n'
      for (const node of segment.nodes.slice(start, start + partSize)) {
        yield await entryHtml(node, session, turnsHtml(branches.get(node) ?? []))
      }
      yield '</div>\n'
    }
    yield '</section>\n'
  }
  yield '</main>\n</body>\n</html>\n'
}

/** Entries that are out of sight together: a browser looks at a few hundred parts and not at every entry. */
const partSize = 50

/** Columns, in the tree and before a branch. */
const maxWords = 80

function aboutHtml({ id, created, cwd, cost, tokens, segments }: ExportedSession): string {
  const entries = segments.reduce((sum, { nodes }) => sum + nodes.length, 0)
  const facts = [
    `session ${id}`,
    created,
    cwd,
    counted(entries, 'entry', 'entries'),
    `${tokens} tokens`,
    costText(cost),
  ]
  return facts
    .filter((fact) => fact !== undefined)
    .map(escapeHtml)
    .join(' · ')
}

/** What people look for: what was asked, what was marked, where it branches. */
function* sidebar(segments: readonly Segment[]): Generator<string> {
  yield '<nav aria-label="Tree">\n<h2>Tree</h2>\n'
  for (const segment of segments) {
    const title = segment.number === 0 ? 'Current path' : nameOf(segment)
    yield `<ol class="d${Math.min(4, segment.depth)}"><li class="branch"><a href="#branch-${segment.number}">${title}</a></li>\n`
    for (const node of segment.nodes) yield sidebarItem(node)
    yield '</ol>\n'
  }
  yield '</nav>\n'
}

function sidebarItem(node: TreeNode): string {
  const { entry, label } = node
  const isAsked = entry.type === 'message' && entry.message.role === 'user'
  const isMilestone = entry.type === 'compaction' || entry.type === 'branch_summary' || entry.type === 'gap'
  if (!isAsked && !isMilestone && label === undefined) return ''
  const { kind, words } = describeEntry(entry)
  const mark = label === undefined ? '' : `<span class="label">${escapeHtml(label)}</span> `
  const text = `${isAsked ? '' : `${kind}: `}${fitText(words, maxWords)}`
  return `<li class="${isAsked ? 'user' : 'other'}"><a href="#${anchorOf(entry)}">${mark}${escapeHtml(text)}</a></li>\n`
}

function headingHtml(segment: Segment): string {
  if (segment.number === 0) return segment.nodes.length === 0 ? '<p>The session stands before its first entry.</p>' : ''
  const { from } = segment
  const origin = from ? `<a href="#${anchorOf(from.entry)}">entry ${from.entry.seq}</a>` : 'the beginning'
  return `<h2>${nameOf(segment)}</h2><p class="turn">Branches off from ${origin}.</p>`
}

function turnsHtml(branches: readonly Segment[]): string {
  return branches
    .map(({ number, nodes, ...segment }) => {
      const [first] = nodes
      const words = first ? fitText(describeEntry(first.entry).words, maxWords) : ''
      return `<p class="turn">↳ <a href="#branch-${number}">${nameOf({ number, nodes, ...segment })}</a> ${escapeHtml(words)}</p>`
    })
    .join('')
}

function nameOf({ number, nodes }: Segment): string {
  return `Branch ${number} (${counted(nodes.length, 'entry', 'entries')})`
}
