"""The leaflet's pages that have a text layer; two of them also carry a picture with text of its own."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.demo import leaflet_copy as copy
from sam2_mcp_worker.demo.layout import (
    BLUE,
    BODY_PT,
    COLUMN_PT,
    CORAL,
    CREAM,
    GREY,
    HEIGHT_PT,
    INK,
    LINE,
    MARGIN_PT,
    NAVY,
    RIGHT_PT,
    SKY,
    SMALL_PT,
    SUN,
    WHITE,
    WIDTH_PT,
    Style,
    Table,
    heading,
    in_middle,
    note_panel,
    page_frame,
    paragraph,
    subheading,
    table,
)
from sam2_mcp_worker.demo.leaflet_pictures import BANNER_PT, PHONE_PT, banner_picture, phone_picture
from sam2_mcp_worker.demo.surfaces import PdfSurface

NOTE = Style(SMALL_PT, "body", GREY)


def overview_page(page: PdfSurface, number: int) -> None:
    """Page 2: the promise in four cards and one table."""
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "한눈에 보는 보장", "큰 병 앞에서 먼저 생각나는 보험")
    intro = (
        "한국인의 사망 원인 1위는 암입니다. 치료비보다 더 무거운 것은 일을 쉬는 동안의 생활비입니다. "
        f"{copy.PRODUCT}은 진단을 받은 날 한 번에 목돈을 드려 치료와 생활을 함께 지킵니다."
    )
    y = paragraph(page, MARGIN_PT, y, intro, Style(10.56), COLUMN_PT) + 16
    cards = (
        ("5,000만원", "암 진단비", "고급형, 최초 1회"),
        ("2,000만원", "뇌혈관질환 진단비", "고급형, 최초 1회"),
        ("5만원", "입원 일당", "고급형, 1일 이상 입원"),
        ("100세", "최대 보장 나이", "20년마다 갱신"),
    )
    width, height, gap = (COLUMN_PT - 14) / 2, 92.0, 14.0
    for index, (amount, name, note) in enumerate(cards):
        x, top = MARGIN_PT + index % 2 * (width + gap), y + index // 2 * (height + gap)
        page.panel((x, top, x + width, top + height), SKY if index in (0, 3) else CREAM, radius=12)
        page.ellipse((x + 16, top + 22, x + 64, top + 70), WHITE)
        in_middle(page, (x + 16, top + 22, x + 64, top + 70), str(index + 1), Style(20, "title", BLUE))
        page.text((x + 78, top + 41), amount, 22, "title", NAVY)
        page.text((x + 78, top + 59), name, 10.56, "bold", INK)
        page.text((x + 78, top + 75), note, SMALL_PT, "body", GREY)
    y = subheading(page, y + 2 * (height + gap) + 16, "주요 보장 금액", "단위: 원, 각 담보별 1회 기준")
    rows = [(name, basic, high) for name, _, basic, high in copy.COVERS]
    content = Table(("보장", "기본형", "고급형"), rows, (0.4, 0.3, 0.3), ("left", "right", "right"), Style(9.6), 8.5)
    y = table(page, MARGIN_PT, y, COLUMN_PT, content) + 10
    note = (
        "※ 유사암은 기타피부암, 갑상선암, 제자리암, 경계성종양을 말합니다. 자세한 지급 사유는 4쪽과 약관에서 "
        "확인하시기 바랍니다."
    )
    y = paragraph(page, MARGIN_PT, y, note, NOTE, COLUMN_PT) + 20
    page.panel((MARGIN_PT, y, RIGHT_PT, y + 66), NAVY, radius=12)
    page.text((MARGIN_PT + 22, y + 30), "진단받은 날, 한 번에 드립니다", 15.36, "title", WHITE)
    page.text((MARGIN_PT + 22, y + 49), "치료비 영수증을 모으지 않아도 됩니다", BODY_PT, "body", (190, 214, 240))
    page.text((RIGHT_PT - 22, y + 42), "3영업일 이내 지급", 17.28, "title", SUN, align="right")


def premium_page(page: PdfSurface, number: int) -> None:
    """Page 3: premiums by age, as a table and as bars."""
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "보험료 예시", "커피 몇 잔 값으로 시작하세요")
    y = subheading(page, y, "나이별 월 보험료", "일반심사형")
    head = ("가입나이", "기본형 남자", "기본형 여자", "고급형 남자", "고급형 여자")
    content = Table(head, copy.PREMIUMS, (1, 1, 1, 1, 1), ("left", "right", "right", "right", "right"), Style(9.6), 9.5)
    y = table(page, MARGIN_PT, y, COLUMN_PT, content) + 8
    y = paragraph(page, MARGIN_PT, y, "※ " + copy.PREMIUM_BASIS, NOTE, COLUMN_PT)
    y = paragraph(
        page,
        MARGIN_PT,
        y,
        "※ 직업이나 건강 상태에 따라 보험료가 달라지거나 가입이 제한될 수 있습니다.",
        NOTE,
        COLUMN_PT,
    )
    y = subheading(page, y + 22, "나이가 들수록 얼마나 달라지나요?", "기본형 남자, 월 보험료")
    y = _bars(page, y + 6)
    y = subheading(page, y + 18, "보험료를 줄이는 방법", "할인율은 서로 더할 수 있으며 최대 8.0%")
    figures_row(page, y, copy.DISCOUNTS)
    warning = (
        copy.RENEWAL_WARNING
        + " 갱신 보험료는 최초 보험료의 2배를 넘을 수 있으니 8쪽의 인상 예시를 확인하시기 바랍니다."
    )
    note_panel(page, y + 104, "갱신형 상품입니다", warning, CREAM, CORAL)


def figures_row(page: PdfSurface, y: float, figures: Sequence[tuple[str, str, str]]) -> None:
    """Cards side by side, each with a large figure, what it is, and its condition."""
    gap = 14.0
    width = (COLUMN_PT - gap * (len(figures) - 1)) / len(figures)
    for index, (figure, name, note) in enumerate(figures):
        x = MARGIN_PT + index * (width + gap)
        page.panel((x, y, x + width, y + 86), SKY, radius=12)
        in_middle(page, (x, y + 10, x + width, y + 44), figure, Style(24, "title", BLUE))
        in_middle(page, (x, y + 46, x + width, y + 62), name, Style(BODY_PT, "bold"))
        in_middle(page, (x, y + 62, x + width, y + 77), note, NOTE)


def _bars(page: PdfSurface, y: float) -> float:
    longest = max(value for _, value in copy.PREMIUM_BARS)
    for index, (age, value) in enumerate(copy.PREMIUM_BARS):
        top = y + index * 38
        width = (COLUMN_PT - 140) * value / longest
        in_middle(page, (MARGIN_PT, top, MARGIN_PT + 50, top + 26), age, Style(10.56, "bold", NAVY), "left", 0)
        page.panel((MARGIN_PT + 50, top, MARGIN_PT + 50 + width, top + 26), SUN if index == 1 else BLUE, radius=5)
        label = (MARGIN_PT + 50 + width, top, RIGHT_PT, top + 26)
        in_middle(page, label, f"{value:,}원", Style(11.52, "title", INK), "left", 8)
    return y + 38 * len(copy.PREMIUM_BARS)


def questions_page(page: PdfSurface, number: int) -> None:
    """Page 5: questions in the text layer, and a banner that is a picture."""
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "자주 묻는 질문", "가입 전에 많이 물어보십니다")
    for question, answer in copy.QUESTIONS:
        page.ellipse((MARGIN_PT, y, MARGIN_PT + 22, y + 22), NAVY)
        in_middle(page, (MARGIN_PT, y, MARGIN_PT + 22, y + 22), "Q", Style(12, "title", WHITE))
        page.text((MARGIN_PT + 32, y + 15.6), question, 12.96, "bold", NAVY)
        y = paragraph(page, MARGIN_PT + 32, y + 29, answer, Style(10.56), COLUMN_PT - 32) + 16
        page.panel((MARGIN_PT, y, RIGHT_PT, y + 0.6), LINE)
        y += 18
    y = subheading(page, y + 10, "이달의 행사", "2026년 11월 1일 ~ 11월 30일")
    width, height = BANNER_PT
    page.picture((MARGIN_PT, y, MARGIN_PT + width, y + height), banner_picture(page.fonts))
    note = "행사 조건은 그림 안의 안내를 따르며, 행사와 관계없이 보험계약의 내용은 약관에서 정한 바에 따릅니다."
    paragraph(page, MARGIN_PT, y + height + 8, note, NOTE, COLUMN_PT)


def joining_page(page: PdfSurface, number: int) -> None:
    """Page 6: conditions and the way to a contract."""
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "가입 안내", "가입은 네 걸음이면 됩니다")
    gap = 12.0
    width = (COLUMN_PT - 3 * gap) / 4
    for index, (title, first, second) in enumerate(copy.STEPS):
        x = MARGIN_PT + index * (width + gap)
        page.panel((x, y, x + width, y + 138), SKY, radius=12)
        page.ellipse((x + width / 2 - 17, y + 14, x + width / 2 + 17, y + 48), BLUE)
        in_middle(page, (x, y + 14, x + width, y + 48), str(index + 1), Style(16, "title", WHITE))
        in_middle(page, (x, y + 56, x + width, y + 76), title, Style(12, "bold", NAVY))
        in_middle(page, (x, y + 82, x + width, y + 98), first, Style(SMALL_PT))
        in_middle(page, (x, y + 98, x + width, y + 114), second, Style(SMALL_PT))
        if index < len(copy.STEPS) - 1:
            tip, middle = x + width + gap - 2, y + 69
            page.polygon([(tip - 8, middle - 7), (tip, middle), (tip - 8, middle + 7)], SUN)
    y = subheading(page, y + 168, "가입 조건")
    content = Table(
        ("구분", "내용", "참고"), copy.CONDITIONS, (0.24, 0.4, 0.36), ("left", "left", "left"), Style(9.6), 10
    )
    y = table(page, MARGIN_PT, y, COLUMN_PT, content)
    y = subheading(page, y + 30, "이런 분께 권합니다")
    reasons = (
        ("가족력이 걱정되는 분", "진단비를 한 번에 받아 치료 방법을 스스로 고를 수 있습니다."),
        ("실손의료보험만 있는 분", "실손이 갚아 주지 않는 간병비와 생활비에 쓸 수 있습니다."),
        ("보험료 부담이 큰 분", "20년 만기 갱신형이라 처음 보험료가 낮습니다. 다만 갱신할 때 오를 수 있습니다."),
    )
    for title, text in reasons:
        page.ellipse((MARGIN_PT + 2, y + 3, MARGIN_PT + 12, y + 13), SUN)
        page.text((MARGIN_PT + 22, y + 12), title, 10.56, "bold", INK)
        page.text((MARGIN_PT + 150, y + 11.8), text, 9.12, "body", INK)
        y += 32
    page.panel((MARGIN_PT, y + 14, RIGHT_PT, y + 84), NAVY, radius=12)
    page.text((MARGIN_PT + 22, y + 54), "상담은 무료입니다", 15.36, "title", WHITE)
    page.text((RIGHT_PT - 22, y + 56), f"고객센터 {copy.PHONE}", 19.2, "title", SUN, align="right")


def claims_page(page: PdfSurface, number: int) -> None:
    """Page 7: how to claim, beside a screen shot that is a picture."""
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "보험금 청구", "받을 때가 더 쉬워야 합니다")
    width, height = PHONE_PT
    left = RIGHT_PT - width
    page.picture((left, y, RIGHT_PT, y + height), phone_picture(page.fonts))
    text_width = left - MARGIN_PT - 26
    step_y = y
    for index, (title, text) in enumerate(copy.CLAIM_STEPS):
        page.ellipse((MARGIN_PT, step_y, MARGIN_PT + 28, step_y + 28), SUN)
        in_middle(page, (MARGIN_PT, step_y, MARGIN_PT + 28, step_y + 28), str(index + 1), Style(14, "title", NAVY))
        page.text((MARGIN_PT + 40, step_y + 18.5), title, 13.44, "bold", NAVY)
        paragraph(page, MARGIN_PT + 40, step_y + 31, text, Style(BODY_PT), text_width - 40)
        step_y += 84
    y = subheading(page, y + height + 20, "지급 실적", "2025년 1월 ~ 12월, 당사 집계")
    figures_row(page, y, copy.CLAIM_RECORD)
    y = subheading(page, y + 102, "청구 서류", "서류에 따라 더 필요할 수 있습니다")
    head = ("보장", "필요한 서류", "지급 기한")
    content = Table(head, copy.CLAIM_PAPERS, (0.2, 0.6, 0.2), ("left", "left", "right"), Style(9.12), 6)
    y = table(page, MARGIN_PT, y, COLUMN_PT, content)
    note = (
        "※ 조사나 확인이 필요한 청구는 지급이 늦어질 수 있으며, 이 경우 서류를 접수한 날부터 30영업일 이내에서 "
        "지급예정일을 "
        "따로 알려 드립니다. 지급이 늦어지면 보험계약대출이율을 연 단위 복리로 계산한 이자를 더하여 지급합니다."
    )
    paragraph(page, MARGIN_PT, y + 8, note, NOTE, COLUMN_PT)


def closing_page(page: PdfSurface, number: int) -> None:
    """Page 9: what comes back when the contract is ended, who protects it, who answers for the advertisement."""
    page_frame(page, number, copy.RUNNING_TITLE, copy.DEMO_NOTICE)
    y = heading(page, 44, "해약환급금 예시", "중간에 그만두면 얼마를 돌려받나요?")
    y = (
        paragraph(
            page, MARGIN_PT, y, "기준: 40세 남자, 기본형, 월 보험료 23,400원, 적용이율 연복리 2.5%", NOTE, COLUMN_PT
        )
        + 6
    )
    head = ("경과 기간", "납입 보험료", "해약환급금", "환급률")
    content = Table(head, copy.REFUNDS, (1, 1.2, 1.2, 0.9), ("left", "right", "right", "right"), Style(9.6), 8.5)
    y = table(page, MARGIN_PT, y, COLUMN_PT, content) + 22
    for title, text, fill in (
        ("예금자보호 안내", copy.DEPOSIT_PROTECTION, SKY),
        ("기존 계약을 해지하고 새로 가입하실 때", copy.SWITCHING_WARNING, CREAM),
    ):
        y = note_panel(page, y, title, text, fill, NAVY) + 14
    y = paragraph(
        page, MARGIN_PT, y, copy.READ_TERMS + " 이 안내장은 약관의 일부를 간추린 것입니다.", Style(BODY_PT), COLUMN_PT
    )
    page.panel((0, HEIGHT_PT - 178, WIDTH_PT, HEIGHT_PT - 48), NAVY)
    foot = HEIGHT_PT - 178
    page.text((MARGIN_PT, foot + 40), copy.INSURER, 19.2, "title", WHITE)
    page.text((MARGIN_PT, foot + 60), "하늘처럼 넓게, 빛처럼 먼저", 9.6, "body", (190, 214, 240))
    page.text((RIGHT_PT, foot + 42), copy.PHONE, 24, "title", SUN, align="right")
    page.text((RIGHT_PT, foot + 60), f"평일 09:00 ~ 18:00  |  {copy.SITE}", 9.12, "body", WHITE, align="right")
    page.panel((MARGIN_PT, foot + 78, RIGHT_PT, foot + 78.6), (70, 104, 150))
    page.text((MARGIN_PT, foot + 98), copy.REVIEW_SEAL, 9.12, "body", WHITE)
    notice = "이 문서는 소프트웨어를 시험하려고 만든 것으로, 실제 회사나 상품과 관계가 없습니다."
    page.text((MARGIN_PT, foot + 115), notice, SMALL_PT, "body", (190, 214, 240))
