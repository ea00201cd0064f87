"""The leaflet's pages and panels that are pictures: cover, detailed cover, notices, and the two inserted pictures.

Fine print here is 12 px at 150 dpi (5.76 pt): the size at which a reader that scales pages down goes blind.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

from sam2_mcp_worker.demo import leaflet_copy as copy
from sam2_mcp_worker.demo.fonts import Face
from sam2_mcp_worker.demo.layout import (
    BLUE,
    BODY_PT,
    COLUMN_PT,
    CORAL,
    CREAM,
    FINE_PT,
    GREY,
    HEIGHT_PT,
    INK,
    LINE,
    MARGIN_PT,
    NAVY,
    PALE,
    RIGHT_PT,
    SKY,
    SMALL_PT,
    SUN,
    WHITE,
    WIDTH_PT,
    Style,
    Table,
    bullets,
    heading,
    in_middle,
    page_frame,
    paragraph,
    subheading,
    table,
)
from sam2_mcp_worker.demo.surfaces import Box, Colour, PictureSurface

Fonts = dict[Face, Path]
BANNER_PT = (COLUMN_PT, 150.0)
PHONE_PT = (190.0, 330.0)
# Around the dome of the cover's umbrella (see _cover_scene), as loose as a reader's boxes are.
UMBRELLA_PT: Box = (178.0, 284.0, 422.0, 436.0)


def cover_page(fonts: Fonts) -> PictureSurface:
    """Page 1: sky, hills and umbrella, the promise, and the small print that limits it."""
    page = PictureSurface(WIDTH_PT, HEIGHT_PT, fonts, WHITE)
    _cover_scene(page)
    _brand(page, 46)
    page.text((MARGIN_PT, 142), "오늘이 든든하면", 39.84, "title", NAVY)
    page.text((MARGIN_PT, 193), "내일이 환해집니다", 39.84, "title", NAVY)
    page.text((MARGIN_PT, 228), copy.PRODUCT_FULL, 15.36, "bold", BLUE)
    page.text((MARGIN_PT, 250), "암, 뇌혈관, 심장질환을 하나로 보장합니다", 12.48, "body", INK)
    chips = (("암 진단비", "최대 5,000만원"), ("뇌혈관 · 심장질환", "각 2,000만원"), ("입원 첫날부터", "하루 5만원"))
    width = (COLUMN_PT - 24) / 3
    for number, (name, amount) in enumerate(chips):
        x = MARGIN_PT + number * (width + 12)
        page.panel((x, 572, x + width, 642), WHITE, radius=12)
        in_middle(page, (x, 582, x + width, 604), name, Style(11.04, "bold", BLUE))
        in_middle(page, (x, 605, x + width, 634), amount, Style(18.24, "title", NAVY))
    page.panel((MARGIN_PT, 662, RIGHT_PT, 726), NAVY, radius=14)
    page.text((MARGIN_PT + 22, 700), "40세 여자, 기본형 기준", 12, "body", WHITE)
    page.text((RIGHT_PT - 22, 704.5), "월 19,800원부터", 27.36, "title", SUN, align="right")
    fine = Style(FINE_PT, "body", INK)
    y = 738.0
    for note in copy.COVER_NOTES:
        y = paragraph(page, MARGIN_PT, y, note, fine, COLUMN_PT)
    page.panel((MARGIN_PT, 783, RIGHT_PT, 783.6), LINE)
    page.text((MARGIN_PT, 797), copy.REVIEW_SEAL, SMALL_PT, "body", INK)
    page.text((RIGHT_PT, 797), copy.DEMO_NOTICE, SMALL_PT, "body", GREY, align="right")
    return page


def _brand(page: PictureSurface, y: float) -> None:
    page.ellipse((MARGIN_PT, y - 14, MARGIN_PT + 18, y + 4), SUN)
    page.ellipse((MARGIN_PT + 8, y - 7, MARGIN_PT + 26, y + 11), BLUE)
    page.text((MARGIN_PT + 33, y + 4), copy.INSURER, 16.32, "title", NAVY)
    page.text((RIGHT_PT, y + 3), "2026년 11월 상품 안내", 10.56, "body", NAVY, align="right")


def _cover_scene(page: PictureSurface) -> None:
    page.gradient((0, 0, WIDTH_PT, 560), (176, 214, 245), (244, 250, 255))
    page.ellipse((408, 84, 508, 184), (255, 226, 150))
    page.ellipse((422, 98, 494, 170), SUN)
    for x, y, size in ((330, 262, 0.8), (70, 318, 1.0), (470, 224, 0.62)):
        _cloud(page, x, y, size)
    page.ellipse((-160, 440, 420, 800), (168, 211, 175))
    page.ellipse((170, 452, 800, 820), (132, 190, 150))
    page.ellipse((-220, 500, 640, 900), (96, 165, 124))
    _umbrella(page, 300, 388, 118)
    for x, height, colour in ((250, 84, CORAL), (292, 98, NAVY), (336, 52, SUN), (366, 62, BLUE)):
        _person(page, x, 528, height, colour)
    page.panel((0, 556, WIDTH_PT, HEIGHT_PT + 4), SKY)
    page.panel((0, 732, WIDTH_PT, HEIGHT_PT + 4), WHITE)


def _cloud(page: PictureSurface, x: float, y: float, size: float) -> None:
    for dx, dy, radius in ((0, 0, 20), (22, -10, 26), (50, -4, 22), (72, 4, 15)):
        cx, cy, r = x + dx * size, y + dy * size, radius * size
        page.ellipse((cx - r, cy - r, cx + r, cy + r), WHITE)
    page.panel((x - 10 * size, y + 2 * size, x + 80 * size, y + 20 * size), WHITE, radius=9 * size)


def _umbrella(page: PictureSurface, cx: float, cy: float, radius: float) -> None:
    """A dome of alternating panels over a straight stick with a hook."""
    page.panel((cx - 2.2, cy - 4, cx + 2.2, cy + 128), (110, 84, 60), radius=2)
    panels = 6
    # Panels meet at the top; their lower ends are spread as the ribs of a half circle seen from the side.
    ends = [cx - radius * math.cos(math.pi * step / panels) for step in range(panels + 1)]
    for number, (left, right) in enumerate(pairwise(ends)):
        colour = BLUE if number % 2 == 0 else (120, 180, 235)
        page.polygon([*_rib(cx, cy, radius, left), *reversed(_rib(cx, cy, radius, right))], colour)
        middle, half = (left + right) / 2, (right - left) / 2
        page.ellipse((middle - half, cy - half * 0.34, middle + half, cy + half * 0.34), colour)
    page.panel((cx - 2, cy - radius * 0.8 - 12, cx + 2, cy - radius * 0.8 + 2), (110, 84, 60), radius=2)


def _rib(cx: float, cy: float, radius: float, end_x: float) -> list[tuple[float, float]]:
    """From the top of the dome along a quarter ellipse to its lower edge."""
    steps = 24
    angles = [math.pi / 2 * step / steps for step in range(steps + 1)]
    return [(cx + (end_x - cx) * math.sin(angle), cy - radius * 0.8 * math.cos(angle)) for angle in angles]


def _person(page: PictureSurface, x: float, foot_y: float, height: float, colour: Colour) -> None:
    head, body = height * 0.15, height * 0.2
    top = foot_y - height
    page.panel((x - body, top + head * 2.15, x + body, foot_y), colour, radius=body)
    page.ellipse((x - head, top, x + head, top + 2 * head), (246, 209, 178))


def detail_page(fonts: Fonts, number: int) -> PictureSurface:
    """Page 4: the table of cover as a picture, and the exclusions in fine print."""
    page = PictureSurface(WIDTH_PT, HEIGHT_PT, fonts, WHITE)
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "보장내용 자세히", "어떤 때 얼마를 받나요?")
    head = ("보장", "지급 사유", "기본형", "고급형")
    content = Table(head, copy.COVERS, (0.19, 0.45, 0.18, 0.18), ("left", "left", "right", "right"), padding_pt=7)
    y = table(page, MARGIN_PT, y, COLUMN_PT, content) + 18
    page.panel((MARGIN_PT, y, RIGHT_PT, y + 74), CREAM, radius=10)
    page.text((MARGIN_PT + 18, y + 30), "갱신할 때도 건강 상태를 다시 묻지 않습니다", 15.36, "title", NAVY)
    note = "갱신 계약은 별도의 심사 없이 최대 100세까지 이어집니다. 다만 보험료는 다시 계산합니다."
    page.text((MARGIN_PT + 18, y + 52), note, BODY_PT, "body", INK)
    y = subheading(page, y + 94, "일반심사형과 간편심사형")
    kinds = ("항목", "일반심사형", "간편심사형")
    screenings = Table(kinds, copy.SCREENINGS, (0.4, 0.3, 0.3), ("left", "centre", "centre"), padding_pt=5)
    y = table(page, MARGIN_PT, y, COLUMN_PT, screenings)
    y = subheading(page, y + 20, "보험금을 지급하지 않거나 줄이는 경우", "약관 제5조, 제7조")
    fine = Style(FINE_PT, "body", INK)
    gutter = 20.0
    width = (COLUMN_PT - gutter) / 2
    bullets(page, MARGIN_PT, y, copy.EXCLUSIONS[:3], fine, width)
    bullets(page, MARGIN_PT + width + gutter, y, copy.EXCLUSIONS[3:], fine, width)
    return page


def notices_page(fonts: Fonts, number: int) -> PictureSurface:
    """Page 8: the mandatory notices, all of them in fine print, as such pages are."""
    page = PictureSurface(WIDTH_PT, HEIGHT_PT, fonts, WHITE)
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "가입하시기 전에", "꼭 알아두실 사항")
    page.panel((MARGIN_PT, y, RIGHT_PT, y + 40), NAVY, radius=8)
    in_middle(page, (MARGIN_PT, y, RIGHT_PT, y + 40), copy.READ_TERMS, Style(12.48, "bold", WHITE))
    gutter = 22.0
    width = (COLUMN_PT - gutter) / 2
    half = len(copy.NOTICES) // 2
    ends = []
    for column, notices in enumerate((copy.NOTICES[:half], copy.NOTICES[half:])):
        ends.append(_notices(page, MARGIN_PT + column * (width + gutter), y + 62, width, notices))
    y = max(ends) + 14
    y = subheading(page, y, "갱신 시 보험료 인상 예시", "40세 남자, 기본형, 월납")
    head = ("구분", "나이", "월 보험료", "최초 보험료 대비")
    content = Table(head, copy.RENEWALS, (1, 1, 1, 1), ("left", "centre", "right", "right"), Style(9.12), 7)
    y = table(page, MARGIN_PT, y, COLUMN_PT, content)
    note = (
        "※ 위 예시는 위험률이 바뀌지 않는다고 가정하고 나이의 증가만 반영한 것으로, 실제 갱신 보험료와 다를 수 "
        "있습니다."
    )
    paragraph(page, MARGIN_PT, y + 4, note, Style(FINE_PT, "body", CORAL), COLUMN_PT)
    page.text((MARGIN_PT, HEIGHT_PT - 46), copy.REVIEW_SEAL, FINE_PT, "body", INK)
    return page


def _notices(page: PictureSurface, x: float, y: float, width: float, notices: tuple[tuple[str, str], ...]) -> float:
    for title, text in notices:
        page.panel((x, y - 4, x + 14, y - 2.4), SUN)
        page.text((x, y + 8.6), title, SMALL_PT, "bold", NAVY)
        y = paragraph(page, x, y + 13, text, Style(FINE_PT, "body", INK), width) + 14
    return y


def banner_picture(fonts: Fonts) -> PictureSurface:
    """The advertising banner that page 5 carries as a picture."""
    width, height = BANNER_PT
    banner = PictureSurface(width, height, fonts, WHITE)
    banner.gradient((0, 0, width, height), (24, 92, 170), (54, 140, 214))
    banner.ellipse((width - 190, -60, width + 60, 190), (78, 158, 226))
    banner.ellipse((width - 140, 70, width + 20, 230), (120, 184, 236))
    banner.panel((22, 22, 104, 42), SUN, radius=10)
    in_middle(banner, (22, 22, 104, 42), "11월 한정", Style(10.08, "bold", NAVY))
    banner.text((22, 78), "건강검진 이용권을 드립니다", 24, "title", WHITE)
    banner.text((22, 103), "이달에 가입하신 고객 100분께 3만원 상당", 12.48, "body", WHITE)
    note = "※ 월 보험료 2만원 이상, 계약 유지 3개월 이상인 고객 중 추첨. 경품 제세공과금은 회사가 부담합니다."
    banner.text((22, 132), note, FINE_PT, "body", WHITE)
    box: Box = (width - 128, 36, width - 26, 114)
    banner.panel(box, WHITE, radius=10)
    in_middle(banner, (box[0], 44, box[2], 66), "검진 할인", Style(11.04, "bold", BLUE))
    in_middle(banner, (box[0], 66, box[2], 106), "30%", Style(31.2, "title", CORAL))
    return banner


def phone_picture(fonts: Fonts) -> PictureSurface:
    """The screen shot of the claims app that page 7 carries as a picture."""
    width, height = PHONE_PT
    phone = PictureSurface(width, height, fonts, WHITE)
    phone.panel((0, 0, width, height), NAVY, radius=24)
    phone.panel((9, 9, width - 9, height - 9), PALE, radius=17)
    phone.panel((width / 2 - 24, 15, width / 2 + 24, 20), NAVY, radius=2.5)
    phone.text((24, 46), "보험금 청구", 14.4, "title", NAVY)
    phone.text((24, 62), "접수 번호 20261103-0027", 7.2, "body", GREY)
    phone.panel((20, 74, width - 20, 150), BLUE, radius=10)
    phone.text((32, 95), "지급 예정 금액", 8.64, "body", WHITE)
    phone.text((32, 121), "1,250,000원", 20.16, "title", WHITE)
    phone.text((32, 139), "11월 5일까지 지급합니다", 7.68, "body", WHITE)
    stages = (
        ("서류 접수", "11월 3일 09:12"),
        ("심사", "11월 3일 15:40"),
        ("지급 결정", "11월 4일 10:05"),
        ("입금", "진행 중"),
    )
    phone.panel((31, 176, 32.4, 176 + 30 * (len(stages) - 1)), LINE)
    for number, (stage, when) in enumerate(stages):
        y = 176 + 30 * number
        phone.ellipse((26.7, y - 5, 36.7, y + 5), BLUE if number < len(stages) - 1 else SUN)
        phone.text((46, y + 3.2), stage, 9.12, "bold", INK)
        phone.text((width - 26, y + 3), when, FINE_PT, "body", GREY, align="right")
    phone.panel((20, height - 46, width - 20, height - 22), SUN, radius=12)
    in_middle(phone, (20, height - 46, width - 20, height - 22), "담당자에게 전화", Style(9.6, "bold", NAVY))
    return phone
