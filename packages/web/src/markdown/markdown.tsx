import type { Token, Tokens } from 'marked'
import { memo, useRef, type ReactNode } from 'react'
import { noBlocks, parseBlocks } from './blocks.ts'
import { CodeBlock } from './code-block.tsx'
import { decodeReferences, safeUrl } from './safe-url.ts'
import './markdown.css'

/**
 * Untrusted Markdown as elements. HTML in it is shown as text, images are links, and links lead only to pages and mail,
 * so nothing in a text can run code or load anything.
 */
export function Markdown({ text, isGrowing = false }: { text: string; isGrowing?: boolean }): ReactNode {
  const parsed = useRef(noBlocks)
  parsed.current = parseBlocks(text, parsed.current)
  const { tokens } = parsed.current
  const growsFrom = isGrowing ? tokens.length - 2 : Infinity
  return (
    <div className="markdown">
      {tokens.length <= 2 * groupLength ? (
        <Blocks tokens={tokens} growsFrom={growsFrom} />
      ) : (
        Array.from({ length: Math.ceil(tokens.length / groupLength) }, (_, index) => (
          <div key={index} className="group">
            <Blocks
              tokens={tokens.slice(index * groupLength, (index + 1) * groupLength)}
              growsFrom={Math.max(0, Math.min(groupLength, growsFrom - index * groupLength))}
            />
          </div>
        ))
      )}
    </div>
  )
}

/** A long text is drawn in groups of so many blocks: the browser skips those that are out of view. */
const groupLength = 40

/** `growsFrom` is the index of the first block that may still change. */
const Blocks = memo(
  function Blocks({ tokens, growsFrom }: { tokens: readonly Token[]; growsFrom: number }): ReactNode {
    return tokens.map((token, index) => <Block key={index} token={token} isGrowing={index >= growsFrom} />)
  },
  (before, after) =>
    before.growsFrom === after.growsFrom &&
    before.tokens.length === after.tokens.length &&
    before.tokens.every((token, index) => token === after.tokens[index]),
)

/** A block whose text is the same is not drawn again. */
const Block = memo(
  function Block({ token, isGrowing }: { token: Token; isGrowing: boolean }): ReactNode {
    return drawBlock(token, { depth: 0, isGrowing })
  },
  (before, after) => before.token.raw === after.token.raw && before.isGrowing === after.isGrowing,
)

interface Place {
  depth: number
  isGrowing: boolean
}

/** Deeper blocks are shown as their source. */
const maxDepth = 20

function drawBlock(token: Token, place: Place): ReactNode {
  if (place.depth > maxDepth) return <p>{token.raw}</p>
  const inner = { ...place, depth: place.depth + 1 }
  const known = token as Tokens.Generic
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading':
      return <Heading level={(token as Tokens.Heading).depth}>{drawInline(known.tokens, inner)}</Heading>
    case 'paragraph':
      return <p>{drawInline(known.tokens, inner)}</p>
    case 'text':
      return known.tokens ? <>{drawInline(known.tokens, inner)}</> : <>{decodeReferences(String(known['text']))}</>
    case 'code':
      return (
        <CodeBlock
          code={(token as Tokens.Code).text}
          language={(token as Tokens.Code).lang ?? ''}
          isGrowing={place.isGrowing}
        />
      )
    case 'blockquote':
      return <blockquote>{drawBlocks(known.tokens, inner)}</blockquote>
    case 'list':
      return drawList(token as Tokens.List, inner)
    case 'table':
      return drawTable(token as Tokens.Table, inner)
    case 'hr':
      return <hr />
    default:
      // HTML, and whatever a later version of the parser adds, is shown as it was written.
      return <p className="source">{token.raw}</p>
  }
}

function drawBlocks(tokens: readonly Token[] | undefined, place: Place): ReactNode {
  return tokens?.map((token, index) => (
    <div key={index} className="inner">
      {drawBlock(token, place)}
    </div>
  ))
}

/** The headings of the page come first. */
function Heading({ level, children }: { level: number; children: ReactNode }): ReactNode {
  const Tag = `h${Math.min(6, level + 2)}` as 'h3'
  return <Tag>{children}</Tag>
}

function drawList({ items, ordered, start }: Tokens.List, place: Place): ReactNode {
  const children = items.map((item, index) => (
    <li key={index} className={item.task ? 'task' : undefined}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label="done" />}
      {drawBlocks(
        item.tokens.filter(({ type }) => type !== 'checkbox'),
        place,
      )}
    </li>
  ))
  return ordered ? <ol start={start === '' ? 1 : start}>{children}</ol> : <ul>{children}</ul>
}

function drawTable({ header, rows, align }: Tokens.Table, place: Place): ReactNode {
  const cellClass = (column: number): string | undefined => {
    const side = align[column]
    return side == null ? undefined : `align-${side}`
  }
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }, column) => (
              <th key={column} className={cellClass(column)}>
                {drawInline(tokens, place)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map(({ tokens }, column) => (
                <td key={column} className={cellClass(column)}>
                  {drawInline(tokens, place)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function drawInline(tokens: readonly Token[] | undefined, place: Place): ReactNode {
  return tokens?.map((token, index) => <Inline key={index} token={token} place={place} />)
}

function Inline({ token, place }: { token: Token; place: Place }): ReactNode {
  if (place.depth > maxDepth) return token.raw
  const inner = { ...place, depth: place.depth + 1 }
  const known = token as Tokens.Generic
  switch (token.type) {
    case 'text':
      return known.tokens ? drawInline(known.tokens, inner) : decodeReferences(String(known['text']))
    case 'escape':
      return String(known['text'])
    case 'strong':
      return <strong>{drawInline(known.tokens, inner)}</strong>
    case 'em':
      return <em>{drawInline(known.tokens, inner)}</em>
    case 'del':
      return <del>{drawInline(known.tokens, inner)}</del>
    case 'codespan':
      return <code>{String(known['text'])}</code>
    case 'br':
      return <br />
    case 'link':
      return <Link href={String(known['href'])}>{drawInline(known.tokens, inner)}</Link>
    case 'image':
      return (
        <Link href={String(known['href'])}>
          Image: {decodeReferences(String(known['text'])) || String(known['href'])}
        </Link>
      )
    default:
      return token.raw
  }
}

function Link({ href, children }: { href: string; children: ReactNode }): ReactNode {
  const url = safeUrl(decodeReferences(href))
  if (url === undefined) return <span title={href}>{children}</span>
  return (
    <a href={url} title={url} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}
