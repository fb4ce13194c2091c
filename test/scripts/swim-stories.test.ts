import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { formatStory, parseStory, Story } from '../helpers/swim-story.js'

const folder = new URL('swim/', import.meta.url)
const files = readdirSync(fileURLToPath(folder)).filter(file => file.endsWith('.txt'))

describe('protocol stories go as they are written', () => {
  it.each(files)('%s', file => {
    const path = fileURLToPath(new URL(file, folder))
    const written = readFileSync(path, 'utf8')
    const story = new Story()
    const played = parseStory(written).map(({ order }) => ({ order, trace: story.play(order) }))
    const text = formatStory(played)
    if (process.env.UPDATE_SCRIPTS === '1') writeFileSync(path, text)
    else expect(text).toBe(written)
  })

  it('are all there', () => {
    expect(files.length).toBeGreaterThanOrEqual(12)
  })
})
