import { describe, expect, it } from 'vitest';
import { isLikeAscii, mediaType, saysOtherCharset } from './media-type.js';

describe('mediaType', () => {
  it.each([
    ['application/json', 'application/json'],
    ['Application/JSON ; charset=utf-8', 'application/json'],
    ['text/event-stream;charset=utf-8;x=y', 'text/event-stream'],
    [' ; charset=utf-8', ''],
    ['', ''],
    [undefined, ''],
  ])('%j is %j', (contentType, expected) => {
    expect(mediaType(contentType)).toBe(expected);
  });
});

describe('saysOtherCharset', () => {
  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'Application/JSON ; Charset=UTF8;',
    'application/json; charset=us-ascii',
    'application/json; profile=x',
    'multipart/form-data; boundary=x; charset=utf-8',
  ])('is false for %s', (contentType) => expect(saysOtherCharset(contentType)).toBe(false));

  it.each([
    'application/json; charset=utf-7',
    'application/json; charset="utf-7"',
    'application/json; charset=utf-16',
    'application/json; charset=utf-8; charset=utf-7',
    'application/json; charset=utf-7; charset=utf-8',
    'application/json; charset',
    'application/json; charset =utf-7',
    'application/json; charset=utf-8 x; charset=utf-7',
    "application/json; charset*=utf-8''utf-7",
    'application/json; charset*0=utf-; charset*1=7',
    'multipart/form-data; boundary=x; boundary*0=y',
    "multipart/form-data; boundary=x; boundary*=utf-8''y",
  ])('is true for %s', (contentType) => expect(saysOtherCharset(contentType)).toBe(true));
});

describe('isLikeAscii', () => {
  it.each(['utf-8', 'ISO-8859-1', 'latin1', 'windows-1252', ' us-ascii '])('is true for %s', (charset) =>
    expect(isLikeAscii(charset)).toBe(true),
  );
  it.each([
    'utf-7',
    'utf-16',
    'utf-16le',
    'shift_jis',
    'gbk',
    'iso-2022-jp',
    'ebcdic-cp-us',
    'iso-8859-10',
    '',
  ])('is false for %s', (charset) => expect(isLikeAscii(charset)).toBe(false));
});
