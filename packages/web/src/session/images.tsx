import type { Content, ImageSource } from '@tapetree/session'
import { useContext, useEffect, useRef, useState, type ReactNode } from 'react'
import { safeUrl } from '../markdown/safe-url.ts'
import { imageText } from './content-text.ts'
import { blobUrl, OpenedContext } from './use-session.ts'

/** The images of a message or a result. */
export function Images({ content }: { content: string | readonly Content[] }): ReactNode {
  if (typeof content === 'string') return null
  return content.map((block, index) => block.type === 'image' && <Picture key={index} source={block.image.source} />)
}

/** Shows what the session has. An image on another server is a link: it is not loaded without a click. */
export function Picture({ source }: { source: ImageSource }): ReactNode {
  const sessionId = useContext(OpenedContext)?.session.sessionId
  if (source.type === 'base64') return <Embedded source={source} />
  if (source.type === 'blob' && sessionId !== undefined) {
    const url = blobUrl(sessionId, source.sha256)
    return (
      <a className="picture" href={url} target="_blank" rel="noopener">
        <img src={url} alt={imageText(source)} loading="lazy" />
      </a>
    )
  }
  const url = source.type === 'url' ? safeUrl(source.data) : undefined
  if (url === undefined) return <p className="faint">{imageText(source)}</p>
  return (
    <p>
      <a href={url} title={url} target="_blank" rel="noopener noreferrer nofollow">
        Image: {url.slice(0, 200)}
      </a>
    </p>
  )
}

/** Drawn on a canvas: the policy of the page allows images only from the server. */
function Embedded({ source }: { source: Extract<ImageSource, { type: 'base64' }> }): ReactNode {
  const place = useRef<HTMLCanvasElement>(null)
  const [isBroken, setBroken] = useState(false)
  useEffect(() => {
    let isCurrent = true
    void draw(source).then(
      (bitmap) => {
        const canvas = place.current
        if (!isCurrent || !canvas) return
        canvas.width = bitmap.width
        canvas.height = bitmap.height
        canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
      },
      () => isCurrent && setBroken(true),
    )
    return () => void (isCurrent = false)
  }, [source])
  if (isBroken) return <p className="faint">{imageText(source)}</p>
  return <canvas ref={place} className="picture" role="img" aria-label={imageText(source)} />
}

async function draw({ data, mediaType }: { data: string; mediaType: string }): Promise<ImageBitmap> {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
  return createImageBitmap(new Blob([bytes], { type: mediaType }))
}
