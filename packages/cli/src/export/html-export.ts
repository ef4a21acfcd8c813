import type { Content, ImageSource, Message, ToolUse } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'
import {
  changedFiles,
  isGroupedTool,
  parseDiff,
  readsText,
  toldDiagnostics,
  type ComparedFiles,
  type ComparedSide,
  type Comparison,
  type DiffFile,
  type DiffLine,
} from '@tapetree/session/screen'
import { hash } from 'node:crypto'
import { costText, counted, elapsedText } from '../text/amounts.ts'
import { checksText } from '../text/comparison-lines.ts'
import { describeEntry } from '../text/describe-entry.ts'
import { fitText } from '../text/display-width.ts'
import type { Segment } from '../sessions/segments.ts'
import { escapeHtml, markdownHtml } from './markdown-html.ts'
import type { ExportedSession } from './exported-session.ts'
import { callArgument, contentText } from '../text/content-text.ts'

/** Colors the code of diffs. */
export interface CodePainter {
  /** Resolves when the lines of these files can be colored. Those of earlier ones are forgotten. */
  load(files: readonly DiffFile[]): Promise<void>
  /** A part of a line as HTML: escaped, and in spans with the class of their scope (see `codeScopes`). */
  html(place: { file: DiffFile; lines: readonly DiffLine[] }, line: DiffLine, part: LinePart): string
}

interface LinePart {
  start: number
  end: number
}

interface Page extends ExportedSession {
  code: CodePainter
}

/**
 * One page with the tree at the side: the current path, and every branch behind it. It has no script, and its policy blocks all external
 * requests.
 */
export async function* htmlExport(exported: ExportedSession, code: CodePainter): AsyncGenerator<string> {
  const session = { ...exported, code }
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
    yield `<section id="branch-${segment.number}">${await headingHtml(segment, session)}\n`
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

/** Groups entries so that a browser lays out a few hundred parts instead of every entry. */
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

/** What the tree lists: user messages, labels and branch points. */
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

async function headingHtml(segment: Segment, { comparisons, code }: Page): Promise<string> {
  const comparison = comparisons.get(segment.number)
  if (segment.number === 0) return segment.nodes.length === 0 ? '<p>The session is before its first entry.</p>' : ''
  const { from } = segment
  const origin = from ? `<a href="#${anchorOf(from.entry)}">entry ${from.entry.seq}</a>` : 'the beginning'
  return `<h2>${nameOf(segment)}</h2><p class="turn">Branches off from ${origin}.</p>${comparison ? await comparisonHtml(comparison, code) : ''}`
}

async function comparisonHtml({ left, right, files }: Comparison, code: CodePainter): Promise<string> {
  const row = (name: string, of: (side: ComparedSide) => string): string =>
    `<tr><th>${name}</th><td>${escapeHtml(of(left))}</td><td>${escapeHtml(of(right))}</td></tr>`
  const rows = [
    row('messages', ({ messageCount }) => String(messageCount)),
    row('cost', ({ usage }) => costText(usage.cost)),
    row('tokens', ({ usage }) => usage.totalTokens.toLocaleString('en')),
    row('time', ({ runMs }) => elapsedText(runMs)),
    row('checks', checksText),
  ]
  const head = '<tr><td></td><th>this branch</th><th>current path</th></tr>'
  return `<table>${head}${rows.join('')}</table>${files ? await filesHtml(files, code) : ''}`
}

/** How the files of a branch became those of the current path. */
async function filesHtml(files: ComparedFiles, code: CodePainter): Promise<string> {
  const { problem, changes, changedCount, addedLines, removedLines } = files
  if (problem !== undefined) return `<p class="turn">The files are not compared: ${escapeHtml(problem)}</p>`
  if (changedCount === 0) return '<p class="turn">The files are the same.</p>'
  const more = changedCount - changes.length
  let listed = ''
  for (const { path, change, isBinary, patch = '', isCut, ...lines } of changes) {
    const counts = isBinary ? 'not text' : `+${lines.addedLines} −${lines.removedLines}`
    const cut = isCut ? '<p class="turn">The diff is too long: the rest is not in this page.</p>' : ''
    const diff = isBinary ? '' : await diffHtml(parseDiff(clipped(patch)), code)
    listed += folded(`${path} ${change} ${counts}`, diff + cut)
  }
  return (
    `<p class="turn">${counted(changedCount, 'file')} changed from this branch to the current path: +${addedLines} −${removedLines}</p>` +
    `${listed}${more > 0 ? `<p class="turn">${counted(more, 'more file')}: not in this page.</p>` : ''}`
  )
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

/** The style of an exported page. Entries out of sight are not laid out, so that a page with ten thousand of them opens at once. */
const htmlStyle = `
:root { color-scheme: light dark; --text: #1d2127; --soft: #5b6470; --back: #ffffff; --side: #f5f6f8; --line: #d9dde3; --code: #f0f2f5; --user: #eaf2ff; --link: #0b57d0; --bad: #b3261e; --good: #1b6e3c; --mark: #8a5a00; --word: #7b2fa8; --added: #dff5e3; --removed: #fbe3e1 }
@media (prefers-color-scheme: dark) { :root { --text: #e4e7eb; --soft: #9aa4b1; --back: #14171b; --side: #1b1f25; --line: #323943; --code: #20252c; --user: #1b2a40; --link: #8ab4f8; --bad: #f2b8b5; --good: #9bd8ab; --mark: #f0c674; --word: #d7a6f2; --added: #16331f; --removed: #411c1b } }
* { box-sizing: border-box }
html { scroll-padding-top: 1rem }
body { margin: 0; display: grid; grid-template-columns: minmax(14rem, 20rem) minmax(0, 1fr); font: 15px/1.55 system-ui, sans-serif; color: var(--text); background: var(--back) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; background: var(--side); border-right: 1px solid var(--line); font-size: 13px }
nav h2 { margin: 0 0 .5rem; font-size: 13px }
nav ol { list-style: none; margin: 0 0 1rem; padding: 0 }
nav ol.d1 { margin-left: .8rem } nav ol.d2 { margin-left: 1.6rem } nav ol.d3 { margin-left: 2.4rem } nav ol.d4 { margin-left: 3.2rem }
nav li { content-visibility: auto; contain-intrinsic-size: auto 1.6em }
nav a { display: block; padding: .1rem 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: inherit; text-decoration: none }
nav a:hover, nav a:focus-visible { color: var(--link); text-decoration: underline }
nav .branch { font-weight: 600 } nav .assistant, nav .other { color: var(--soft) } nav .label { color: var(--mark) }
main { padding: 1.5rem 2rem 4rem; max-width: 62rem }
h1 { margin: 0 0 .25rem; font-size: 1.5rem; overflow-wrap: anywhere } section > h2 { margin: 2.5rem 0 1rem; padding-top: 1rem; border-top: 2px solid var(--line); font-size: 1.1rem }
.about { margin: 0 0 1.5rem; color: var(--soft); overflow-wrap: anywhere }
.part { content-visibility: auto; contain-intrinsic-size: auto 450rem }
article { content-visibility: auto; contain-intrinsic-size: auto 8rem; margin: 0 0 1rem; padding: .5rem .9rem; border-left: 3px solid var(--line); overflow-wrap: anywhere }
article:target { outline: 2px solid var(--link) }
article.user { background: var(--user); border-color: var(--link); border-radius: 0 6px 6px 0 }
article.failed { border-color: var(--bad) } article.compaction, article.branch_summary, article.gap { border-color: var(--mark) }
header.entry { display: flex; flex-wrap: wrap; gap: .6rem; color: var(--soft); font-size: 12px } header.entry b { color: var(--text) } header.entry a { color: inherit } .tag { color: var(--mark) } .bad { color: var(--bad) }
pre { margin: .4rem 0; padding: .6rem .8rem; overflow: auto; max-height: 40rem; background: var(--code); border-radius: 6px; font: 12.5px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
code { font-family: ui-monospace, monospace; font-size: .9em; background: var(--code); border-radius: 3px; padding: 0 .2em } pre code { padding: 0; background: none; font-size: inherit }
p, ul, blockquote, table, h3, h4, h5, h6 { margin: .4rem 0 } ul { padding-left: 1.3rem } li.number { list-style: decimal } li.in1 { margin-left: 1rem } li.in2 { margin-left: 2rem } li.in3 { margin-left: 3rem } li.in4 { margin-left: 4rem }
blockquote { padding-left: .8rem; border-left: 3px solid var(--line); color: var(--soft) } table { border-collapse: collapse; display: block; overflow: auto } th, td { padding: .2rem .6rem; border: 1px solid var(--line); text-align: left }
details { margin: .4rem 0 } summary { cursor: pointer; color: var(--soft); overflow-wrap: anywhere } a { color: var(--link) } img { max-width: 100%; max-height: 40rem; border-radius: 6px }
.turn { margin: .2rem 0; font-size: 13px }
.diff ins, .diff del { text-decoration: none } .diff ins { background: var(--added) } .diff del { background: var(--removed) } .diff mark { color: inherit; background: none; font-weight: 700; text-decoration: underline }
.s-keyword { color: var(--word) } .s-type, .s-built_in, .s-literal, .s-number { color: var(--mark) } .s-title, .s-attr, .s-attribute { color: var(--link) } .s-string, .s-regexp { color: var(--good) } .s-comment, .s-meta { color: var(--soft) }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto; max-height: 40vh; border-right: 0; border-bottom: 1px solid var(--line) } main { padding: 1rem } }
`

/** One entry of the page. `after` goes at its end: links to other branches. */
async function entryHtml({ entry, label }: TreeNode, session: Page, after = ''): Promise<string> {
  const isFailed = entry.type === 'message' && (entry.message.error !== undefined || hasError(entry.message))
  const kind = entry.type === 'message' ? entry.message.role : entry.type
  return (
    `<article id="${anchorOf(entry)}" class="${escapeHtml(kind)}${isFailed ? ' failed' : ''}">` +
    `${headerHtml(entry, label)}${await bodyHtml(entry, session)}${after}</article>\n`
  )
}

function anchorOf({ id }: Entry): string {
  return `e-${escapeHtml(id)}`
}

function headerHtml(entry: Entry, label: string | undefined): string {
  const { kind } = describeEntry(entry)
  const facts: string[] = [`<b>${escapeHtml(kind)}</b>`, `<a href="#${anchorOf(entry)}">${entry.seq}</a>`]
  if (entry.timestamp !== '') facts.push(`<time>${escapeHtml(entry.timestamp)}</time>`)
  if (entry.type === 'message') {
    const { model, usage, durationMs } = entry.message
    if (model !== undefined) facts.push(escapeHtml(model))
    if (usage?.outputTokens !== undefined) facts.push(escapeHtml(`${usage.outputTokens} tokens out`))
    if (typeof usage?.cost === 'number') facts.push(escapeHtml(costText(usage.cost)))
    if (typeof durationMs === 'number') facts.push(`${(durationMs / 1000).toFixed(1)} s`)
  }
  if (label !== undefined) facts.push(`<span class="tag">${escapeHtml(label)}</span>`)
  return `<header class="entry">${facts.map((fact) => `<span>${fact}</span>`).join('')}</header>`
}

async function bodyHtml(entry: Entry, session: Page): Promise<string> {
  switch (entry.type) {
    case 'message':
      return messageHtml(entry.message, session)
    case 'system': {
      const tools = entry.system.tools.map(({ name, description }) => `${name}: ${description}`).join('\n\n')
      return (
        folded('Prompt', preHtml(entry.system.prompt)) +
        folded(counted(entry.system.tools.length, 'tool'), preHtml(tools))
      )
    }
    case 'compaction': {
      const { summary, tokensBefore, firstKeptEntryId } = entry.compaction
      const kept = `<a href="#e-${escapeHtml(firstKeptEntryId)}">the first kept entry</a>`
      return `<p>Replaces everything before ${kept}; ${escapeHtml(tokensBefore)} tokens.</p>${markdownHtml(summary)}`
    }
    case 'branch_summary':
      return markdownHtml(entry.branchSummary.summary)
    case 'custom':
      return folded(entry.custom.customType, preHtml(JSON.stringify(entry.custom.data, null, 2)))
    case 'unknown':
      return folded(entry.unknown.type, preHtml(JSON.stringify(entry.unknown.line, null, 2)))
    default:
      return `<p>${escapeHtml(describeEntry(entry).words)}</p>`
  }
}

async function messageHtml({ role, content, bashExecution, error }: Message, session: Page): Promise<string> {
  const told = role === 'custom' ? toldDiagnostics(contentText(content)) : undefined
  if (told) return folded(told.title, preHtml(told.lines.join('\n')))
  let html = ''
  for (const blocks of groupedBlocks(content)) {
    const reads = blocks.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse] : []))
    let drawn = ''
    for (const block of blocks) drawn += await blockHtml(block, session)
    html += blocks.length > 1 ? folded(readsText(reads), drawn) : drawn
  }
  if (bashExecution) html += preHtml(`$ ${bashExecution.command}`) + outputHtml('Output', bashExecution.output)
  if (error) html += `<p class="bad">${escapeHtml(`${error.kind}: ${error.message}`)}</p>`
  return html
}

/** Read-only calls that follow one another are one group; everything else stands alone. */
function groupedBlocks(content: readonly Content[]): Content[][] {
  const groups: Content[][] = []
  const isRead = (block: Content | undefined): boolean =>
    block?.type === 'tool_use' && isGroupedTool(block.toolUse.name)
  for (const block of content) {
    const last = groups.at(-1)
    if (last && isRead(block) && isRead(last[0])) last.push(block)
    else groups.push([block])
  }
  return groups
}

async function blockHtml(block: Content, session: Page): Promise<string> {
  switch (block.type) {
    case 'text':
      return markdownHtml(clipped(block.text.content))
    case 'reasoning':
      return block.reasoning.text === '' ? '' : folded('Reasoning', markdownHtml(clipped(block.reasoning.text)))
    case 'tool_use':
      return callHtml(block.toolUse, session.code)
    case 'tool_result': {
      const { toolUseId, isError, content } = block.toolResult
      const title = `${session.callNames.get(toolUseId) ?? toolUseId}${isError ? ' failed' : ''}`
      if (typeof content === 'string') {
        const isDiff = changesFile(session.callNames.get(toolUseId)) && !isError && content.includes('\n\n')
        return isDiff
          ? await changeHtml(title, { files: changedFiles({}, clipped(content)), code: session.code, isOpen: true })
          : outputHtml(title, content)
      }
      let html = `<p class="turn">${escapeHtml(title)}</p>`
      for (const each of content)
        html += each.type === 'text' ? outputHtml('Output', each.text.content) : await blockHtml(each, session)
      return html
    }
    case 'image':
      return imageHtml(block.image.source, session)
    default:
      return block satisfies never
  }
}

async function callHtml({ name, input, partialInput }: ToolUse, code: CodePainter): Promise<string> {
  const [about = ''] = callArgument({ name, input }).split('\n', 1)
  const title = `${name} ${fitText(about, 120)}`.trim()
  if (changesFile(name) && partialInput === undefined)
    return changeHtml(title, { files: changedFiles(input, ''), code })
  return folded(title, preHtml(partialInput ?? JSON.stringify(input, null, 2)))
}

function changesFile(name: string | undefined): boolean {
  return name === 'edit' || name === 'write'
}

interface Change {
  files: readonly DiffFile[]
  code: CodePainter
  isOpen?: boolean
}

async function changeHtml(title: string, { files, code, isOpen = false }: Change): Promise<string> {
  const lines = files.flatMap(({ hunks }) => hunks.flatMap((hunk) => hunk.lines))
  const count = (wanted: DiffLine['type']): number => lines.filter(({ type }) => type === wanted).length
  return folded(`${title} +${count('added')} −${count('removed')}`, await diffHtml(files, code), { isOpen })
}

/** The scopes of code that have a color in the style, in classes such as `s-keyword`. */
export const codeScopes: readonly string[] = Array.from(htmlStyle.matchAll(/\.s-([a-z_]+)/g), ([, scope = '']) => scope)

/** Unified, with syntax colors, the changed words marked and unchanged lines counted. */
async function diffHtml(files: readonly DiffFile[], code: CodePainter): Promise<string> {
  await code.load(files)
  const lines = files.flatMap((file) => {
    const { hunks, notes } = file
    let end = 0
    const drawn = hunks.flatMap(({ section, lines: changed }) => {
      const numbers = changed.flatMap(({ oldLine }) => oldLine ?? [])
      const between = (numbers[0] ?? 0) - end - 1
      end = numbers.at(-1) ?? end
      const place = [...(between > 0 ? [`⋯ ${counted(between, 'unchanged line')}`] : []), section].filter(Boolean)
      return [
        ...(place.length > 0 ? [`<span class="turn">${escapeHtml(place.join(' · '))}</span>`] : []),
        ...changed.map((line) => diffLineHtml(line, (part) => code.html({ file, lines: changed }, line, part))),
      ]
    })
    return [...drawn, ...notes.map(escapeHtml)]
  })
  const shown = lines.slice(0, maxDiffLines)
  const rest = lines.length - shown.length
  return `<pre class="diff">${shown.join('\n')}${rest > 0 ? `\n… ${counted(rest, 'more line')}: not in this page.` : ''}</pre>`
}

const maxDiffLines = 2000

function diffLineHtml(
  { type, text, oldLine, newLine, marks = [] }: DiffLine,
  draw: (part: LinePart) => string,
): string {
  let html = ''
  let end = 0
  for (const mark of marks) {
    html += `${draw({ start: end, end: mark.start })}<mark>${draw(mark)}</mark>`
    end = mark.end
  }
  html += draw({ start: end, end: text.length })
  const number = String(newLine ?? oldLine ?? '').padStart(5)
  if (type === 'context') return `${number}   ${html}`
  return type === 'added' ? `<ins>${number} + ${html}</ins>` : `<del>${number} − ${html}</del>`
}

const shortOutput = 1500

function outputHtml(title: string, text: string): string {
  return folded(title, preHtml(text), { isOpen: text.length <= shortOutput })
}

function folded(title: string, html: string, { isOpen = false } = {}): string {
  return `<details${isOpen ? ' open' : ''}><summary>${escapeHtml(title)}</summary>${html}</details>`
}

function preHtml(text: string): string {
  return `<pre>${escapeHtml(clipped(text))}</pre>`
}

/** The page is for viewing; the bundle has the full text. */
const maxShown = 100_000

function clipped(text: string): string {
  if (text.length <= maxShown) return text
  return `${text.slice(0, maxShown).toWellFormed()}\n… ${counted(text.length - maxShown, 'more character')}: not in this page.`
}

const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const maxImageBytes = 8 * 1024 * 1024

/** Only embedded bytes: the browser would request a URL. */
async function imageHtml(source: ImageSource, session: Page): Promise<string> {
  if (source.type === 'url') return `<p>Image at <code>${escapeHtml(source.data)}</code></p>`
  if (!imageTypes.has(source.mediaType)) return `<p>Image of type ${escapeHtml(source.mediaType)}</p>`
  const data = source.type === 'base64' ? source.data : await blobData(source.sha256, session)
  if (data === undefined) return '<p>Image missing</p>'
  if (data.length * 0.75 > maxImageBytes) return '<p>Image too large for this page</p>'
  return `<img loading="lazy" alt="" src="data:${source.mediaType};base64,${escapeHtml(data)}">`
}

async function blobData(sha256: string, session: ExportedSession): Promise<string | undefined> {
  const bytes = await session.imageBytes(sha256)
  return bytes && Buffer.from(bytes).toString('base64')
}

function hasError({ content }: Message): boolean {
  return content.some((block) => block.type === 'tool_result' && block.toolResult.isError === true)
}
